// `weft inspect`: what is in a GGUF file and what weft can do with it. Reads headers only, unless
// asked to check data.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/gguf/gguf_file.h"

namespace weft {

struct InspectOptions {
  bool json = false;
  bool check = false;  // read all tensor data and look for scales that are not finite
  std::vector<std::string> supported_architectures;
  // More reasons why weft cannot run the file, one line each; asked when there is none so far. May
  // be empty.
  std::function<std::vector<std::string>(const GgufFile&)> find_obstacles;
};

// Writes a report on the model at `path` (one file, or any part of a split set) to `out`: metadata
// with long arrays abbreviated, tensors, sizes by type, totals, and whether weft can run it. As
// lines of text, or with `json` as one object
// {"files","version","metadata","tensors","types","totals","support"} and "check" where asked.
// Whatever the file contains, the text has no control characters and the JSON is valid. Errors:
// those of GgufFile::Open, before anything is written; INVALID_ARGUMENT after the report if the
// data check found something.
absl::Status InspectFile(const std::string& path, const InspectOptions& options, std::ostream& out);

}  // namespace weft
