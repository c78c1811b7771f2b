// Stands for libedit_line_reader.cc where the library is missing.
#include "coordinator/cli/chat/line_reader.h"

namespace weft {

bool HasLineEditing() { return false; }

absl::StatusOr<std::unique_ptr<LineReader>> MakeEditLineReader(const std::string&, Interrupt&) {
  return absl::UnimplementedError("this program was built without libedit");
}

}  // namespace weft
