// The names of split files: "PREFIX-00001-of-00003.gguf". Parts count from 1 in names and from 0 in
// the key split.no. Source: spec F.10.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

struct GgufSplitName {
  std::string prefix;  // with the folder
  int64_t number = 0;  // from 0
  int64_t count = 0;
};

// The path of part `number` (from 0) of `count`.
std::string GgufSplitPath(std::string_view prefix, int64_t number, int64_t count);

// Nothing if `path` is not such a name.
std::optional<GgufSplitName> ParseGgufSplitPath(std::string_view path);

}  // namespace weft
