#include "coordinator/http/id_source.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/random.h"

namespace weft {

uint64_t IdSource::Next() {
  Random count(count_.fetch_add(1, std::memory_order_relaxed));
  return Random(seed_ ^ count.Next()).Next();
}

std::string IdSource::NextName(std::string_view prefix) {
  return absl::StrCat(AbslView(prefix), absl::Hex(Next(), absl::kZeroPad16),
                      absl::Hex(Next(), absl::kZeroPad16));
}

}  // namespace weft
