// The bridge from std::string_view to the separate absl::string_view of an Abseil that was built
// for C++14, as Debian's is. Needed wherever a std::string_view goes into Abseil: StrCat, StrSplit,
// look-ups in a flat_hash_map of strings, error messages. It costs nothing, and compiles also where
// both are one type.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace weft {

// The same characters, valid as long as they are.
constexpr absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

// The way back.
constexpr std::string_view StdView(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace weft
