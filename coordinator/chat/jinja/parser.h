// From the text of a template to its syntax tree.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/limits.h"
#include "coordinator/chat/jinja/syntax_tree.h"

namespace weft::jinja {

// `source` is UTF-8. Errors: INVALID_ARGUMENT with the line of what is no template or passes a
// limit.
absl::StatusOr<Block> Parse(std::string_view source, const Limits& limits);

}  // namespace weft::jinja
