// FILE.weft-digest: SHA-256 of each MiB of each tensor of a model file, computed once by `weft
// digest` and checked wherever the bytes come from a cache, a peer or a stream (decision 28).
//
// The file is text, a line each, in this order:
//   weft-digest 1
//   size BYTES
//   header HEX                   SHA-256 of the bytes before the tensor data
//   chunk BYTES
//   tensors COUNT
//   tensor OFFSET BYTES NAME     NAME is the rest of the line
//   HEX                          one for each chunk of the tensor, the last one may be short
//   end HEX                      SHA-256 of all lines before this one
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "common/gguf/gguf_file.h"

namespace weft {

inline constexpr int64_t kDigestChunkBytes = int64_t{1} << 20;
inline constexpr std::string_view kDigestSuffix = ".weft-digest";

struct TensorDigests {
  std::string name;    // as EscapedText writes it
  int64_t offset = 0;  // of the first byte, from the start of the file
  int64_t bytes = 0;
  std::vector<Sha256Digest> chunks;  // CeilDivide(bytes, kDigestChunkBytes)
  friend bool operator==(const TensorDigests&, const TensorDigests&) = default;
};

// Of one file (of a split model: of one of them).
struct WeightDigests {
  int64_t size = 0;
  Sha256Digest header;
  std::vector<TensorDigests> tensors;  // in the order of the file
  friend bool operator==(const WeightDigests&, const WeightDigests&) = default;
};

std::string WeightDigestsText(const WeightDigests& digests);

// Takes memory in proportion to `text`. `file_name` is for messages only. Errors: INVALID_ARGUMENT
// "FILE:LINE: why" for anything that WeightDigestsText does not write; DATA_LOSS if the last line
// does not fit the others.
absl::StatusOr<WeightDigests> ParseWeightDigests(std::string_view text, std::string_view file_name);

// Called after each piece, with the bytes of tensor data done and to do; false ends the work with
// CANCELLED. May be empty.
using DigestProgress = std::function<bool(int64_t bytes_done, int64_t bytes_total)>;

// Reads all tensor data of part `file_index` of the model.
absl::StatusOr<WeightDigests> ComputeWeightDigests(const GgufFile& file, int file_index,
                                                   const DigestProgress& progress);

// Whether `digests` are those of that part's size, header and tensor table: nothing of the data is
// read. Errors: FAILED_PRECONDITION naming what differs.
absl::Status CheckDigestsFit(const WeightDigests& digests, const GgufFile& file, int file_index);

// Reads all tensor data and compares. Errors: those of CheckDigestsFit; DATA_LOSS naming the first
// tensor and chunk that differ.
absl::Status CheckWeightDigests(const WeightDigests& digests, const GgufFile& file, int file_index,
                                const DigestProgress& progress);

// The digests file beside `model_path`, or nothing with NOT_FOUND where there is none. Errors:
// those of opening and parsing it.
absl::StatusOr<WeightDigests> ReadWeightDigests(const std::string& model_path);
// Writes it under a temporary name and renames it. Errors: those of writing, naming the path.
absl::Status WriteWeightDigests(const WeightDigests& digests, const std::string& model_path);

}  // namespace weft
