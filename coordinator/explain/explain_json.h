// A report as JSON. docs/explain.md describes the keys; they do not change within a version.
#pragma once

#include <string>

#include "coordinator/explain/explain_report.h"

namespace weft {

// The value of the key "weft_explain".
inline constexpr int kExplainJsonVersion = 1;

struct ExplainJsonOptions {
  bool timings = false;  // "seconds" of each pass; differ from run to run
};

// One object and a line end. Valid JSON whatever the model's names contain: bytes that are not
// UTF-8 are replaced. Equal reports give equal text.
std::string ExplainJson(const ExplainReport& report, const ExplainJsonOptions& options);

}  // namespace weft
