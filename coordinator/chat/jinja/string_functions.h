// Work on texts that methods and filters share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

// Without the characters of `set` (white space if null) at the start and end.
std::string_view Strip(std::string_view text, const std::string* set, bool left, bool right);

// `text` with each `from` replaced by `to`, `count` times at most unless it is negative. An empty
// `from` stands before each character and at the end.
absl::StatusOr<std::string> Replace(Runtime& runtime, std::string_view text, std::string_view from,
                                    std::string_view to, int64_t count);

// Lines without their ends, or with them.
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// Elements as text with `separator` between them.
absl::StatusOr<std::string> JoinTexts(Runtime& runtime, const std::vector<Value>& items,
                                      std::string_view separator);

}  // namespace weft::jinja
