// The JSON of calls, found in text that arrives in pieces and checked when it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "coordinator/chat/json_line.h"

namespace weft {

struct FunctionCall {
  std::string name;
  std::string arguments;  // JSON, an object
};

// The call that `text` is: {"name": ..., "arguments" or "parameters": {...}}; the arguments may be
// left out, and may be a text of JSON. Nothing if it is none.
std::optional<FunctionCall> ParseCall(std::string_view text);

// A call of `name` with `arguments`, a text of JSON that is an object. Nothing if it is none.
std::optional<FunctionCall> MakeCall(std::string_view name, std::string_view arguments);

// Bytes that a call may have; what is longer is text.
inline constexpr size_t kMaxCallBytes = size_t{256} << 10;

// Follows the body of a call through text that grows at its end, and remembers how far it came.
class CallScan {
 public:
  enum class State {
    kOpen,     // the end has not come
    kClosed,   // it has: `body` bytes are the body, `total` with what closes it
    kTooLong,  // it did not come within kMaxCallBytes; `total` bytes are to be taken as text
  };
  struct Result {
    State state = State::kOpen;
    size_t body = 0;
    size_t total = 0;
    size_t marker = 0;  // which one closed it
  };

  // The body ends before the first of `closers` that is not inside the quotes of JSON.
  Result UntilMarkerOutsideStrings(std::string_view text,
                                   std::span<const std::string_view> closers);
  // The body ends before the first of `closers`.
  Result UntilMarker(std::string_view text, std::span<const std::string_view> closers);
  // The body is a JSON object, which starts at the first byte.
  Result UntilObjectEnd(std::string_view text);
  void Reset() { *this = {}; }

 private:
  Result Limit(std::string_view text, Result result) const;
  // Takes the next character; whether it is inside the quotes of JSON, or ends them.
  bool InString(char c);

  size_t scanned_ = 0;
  int64_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace weft
