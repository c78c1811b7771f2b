// `weft digest`: digests of a model's weights, written beside it or checked against what lies
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

struct DigestOptions {
  std::string model_path = {};  // one file, or any part of a split set: all parts are done
  bool check = false;           // compare with FILE.weft-digest instead of writing it
  bool json = false;
  // Called after each piece of each part, with the bytes of tensor data done and to do in that
  // part; may be empty.
  std::function<void(int64_t bytes_done, int64_t bytes_total)> progress = {};
};

// Does what the command does, short of writing to stdout: a line for each part, or with `json` one
// object {"checked", "files": [{"file", "digests", "size", "identity", "tensors", "chunks"}]}, with
// the newline at the end. Errors: those of GgufFile::Open and of the digest file (NOT_FOUND says to
// run `weft digest` first); FAILED_PRECONDITION if it belongs to another file; DATA_LOSS naming the
// first tensor and bytes that differ.
absl::StatusOr<std::string> RunDigest(const DigestOptions& options);

}  // namespace weft
