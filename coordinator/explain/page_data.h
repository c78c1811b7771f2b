// The data of the page: reports of many options, compact. What they have in common (nodes, causes,
// words, equal plans) is there once and named by number.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/explain/explain_variants.h"

namespace weft {

class PageData {
 public:
  // `report` is of the options as given.
  PageData(const ExplainReport& report, absl::Span<const ExplainToggle> toggles);
  ~PageData();

  // The next combination of CombineToggles: its report, or why there is none.
  void Add(const ExplainReport& report);
  void AddRefused(const std::string& reason);

  // JSON in ASCII without <, > and &: it may stand in a page as it is.
  std::string Text() const;

 private:
  class Encoder;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace weft
