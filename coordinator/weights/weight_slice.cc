#include "coordinator/weights/weight_slice.h"

#include <algorithm>

namespace weft {

WeightSlice WholeWeight(int32_t weight, Device* device, const TensorLayout& layout) {
  return {weight, device, layout, {{0, *ByteExtent(layout), 1, 0}}};
}

int64_t TotalBytes(absl::Span<const ByteRun> runs) {
  int64_t bytes = 0;
  for (const ByteRun& run : runs) bytes += run.bytes * run.count;
  return bytes;
}

std::vector<FileRun> FileRuns(absl::Span<const GgufTensor* const> tensors,
                              absl::Span<const ByteRun> runs) {
  std::vector<FileRun> found;
  for (const ByteRun& run : runs) {
    int64_t start = 0;  // of the tensor in the weight
    for (const GgufTensor* tensor : tensors) {
      const int64_t end = start + tensor->bytes;
      if (run.count == 1) {
        // May go on in the next tensor.
        const int64_t from = std::max(run.offset, start);
        const int64_t to = std::min(run.offset + run.bytes, end);
        if (from < to) {
          found.push_back(
              {tensor->file_index, {tensor->file_offset + from - start, to - from, 1, 0}});
        }
      } else {
        const auto at_or_after = [&](int64_t byte) {
          const int64_t pieces = (byte - run.offset + run.stride - 1) / run.stride;
          return std::clamp<int64_t>(byte <= run.offset ? 0 : pieces, 0, run.count);
        };
        const int64_t first = at_or_after(start);
        const int64_t last = at_or_after(end);
        if (first < last) {
          const int64_t offset = tensor->file_offset + run.offset + first * run.stride - start;
          found.push_back({tensor->file_index, {offset, run.bytes, last - first, run.stride}});
        }
      }
      start = end;
    }
  }
  return found;
}

}  // namespace weft
