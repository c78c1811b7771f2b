// A report as lines of text.
#pragma once

#include <string>

#include "coordinator/explain/explain_report.h"

namespace weft {

struct ExplainTextOptions {
  bool nodes = false;    // every node and split in a line of its own
  bool timings = false;  // the time of each pass; differs from run to run
};

// Whatever the model's names contain, the text has no control characters but line ends. Equal
// reports give equal text.
std::string ExplainText(const ExplainReport& report, const ExplainTextOptions& options);

}  // namespace weft
