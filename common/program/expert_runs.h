// Which experts a step uses, as runs that can be copied at once (spec B.10).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// The ids that an I32 tensor names, ascending, each once; negative ones are padding. `bytes` holds
// all of the tensor from its first element, with its strides.
std::vector<int32_t> UsedExperts(const TensorLayout& layout, absl::Span<const uint8_t> bytes);

// Bytes of a weight whose experts lie one after another.
struct ExpertRun {
  int64_t offset = 0;
  int64_t bytes = 0;
  friend bool operator==(const ExpertRun&, const ExpertRun&) = default;
};

// The maximal runs of consecutive used experts of a weight of `experts` times `stride` bytes. A run
// that does not end with the last expert is followed by min(stride, 512) bytes of padding, since
// kernels read past the end of a row and need finite numbers there. `used` comes from UsedExperts.
// Errors: INVALID_ARGUMENT for an id of `experts` or more.
absl::StatusOr<std::vector<ExpertRun>> ExpertRuns(absl::Span<const int32_t> used, int64_t experts,
                                                  int64_t stride);

}  // namespace weft
