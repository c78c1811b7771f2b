// Escapes in the texts of templates.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::jinja {

// `text` with Python's escapes resolved: \n and the like, \ooo, \xhh, \uhhhh, \Uhhhhhhhh; an
// unknown one stays as it is. Errors: too few digits; code points that UTF-8 cannot hold; \N{...}.
absl::StatusOr<std::string> ResolveEscapes(std::string_view text);

}  // namespace weft::jinja
