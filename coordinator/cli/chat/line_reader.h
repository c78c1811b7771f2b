// Lines that a user types, or a script writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cli/chat/interrupt.h"

namespace weft {

inline constexpr size_t kMostLineBytes = size_t{1} << 20;

struct InputLine {
  enum class Kind : uint8_t {
    kLine,
    kInterrupt,  // Ctrl-C; `text` is what had been typed, which is gone
    kEnd,        // Ctrl-D, or the end of the input
  };
  Kind kind = Kind::kEnd;
  std::string text;  // without the line end; valid UTF-8
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  // Shows `prompt` where somebody sees it, and waits. Errors: OUT_OF_RANGE for a line of more than
  // kMostLineBytes; those of reading.
  virtual absl::StatusOr<InputLine> Read(const std::string& prompt) = 0;
};

// Reads standard input without editing; `prompts`: shows them on standard output. `interrupt`
// outlives it.
std::unique_ptr<LineReader> MakePlainLineReader(bool prompts, Interrupt& interrupt);

// Whether there is a reader with editing in this program.
bool HasLineEditing();
// A reader on the terminal with editing and history, which is kept in `history_file` (empty:
// nowhere). Errors: UNIMPLEMENTED without HasLineEditing; UNAVAILABLE if the terminal cannot.
absl::StatusOr<std::unique_ptr<LineReader>> MakeEditLineReader(const std::string& history_file,
                                                               Interrupt& interrupt);

}  // namespace weft
