// What of a weight is to lie where: all of it on one device, or each rank's part.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/gguf/gguf_file.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// `count` pieces of `bytes` each, `stride` apart, from `offset` on.
struct ByteRun {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t count = 1;
  int64_t stride = 0;
  friend bool operator==(const ByteRun&, const ByteRun&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ByteRun& r) {
    return H::combine(std::move(h), r.offset, r.bytes, r.count, r.stride);
  }
};

// The runs of the weight's bytes, one behind the other, are the slice, packed.
struct WeightSlice {
  int32_t weight = 0;
  Device* device = nullptr;
  TensorLayout layout;
  std::vector<ByteRun> runs;
};

// A run of a file of the set.
struct FileRun {
  int32_t file = 0;
  ByteRun run;  // offsets from the start of the file
};

// All of a weight.
WeightSlice WholeWeight(int32_t weight, Device* device, const TensorLayout& layout);

int64_t TotalBytes(absl::Span<const ByteRun> runs);

// Where the runs of a weight, made of `tensors` behind each other, are in the files. No piece lies
// in two tensors.
std::vector<FileRun> FileRuns(absl::Span<const GgufTensor* const> tensors,
                              absl::Span<const ByteRun> runs);

}  // namespace weft
