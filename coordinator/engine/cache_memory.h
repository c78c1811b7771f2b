// Memory for the KV cache, on the devices that hold parts of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/buffer.h"
#include "common/tensor/dtype.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/models/model.h"

namespace weft {

struct CacheMemory {
  std::vector<std::unique_ptr<Buffer>> buffers;  // by slice
  int64_t bytes = 0;
};

// `pages` pages for each slice, the first of which belongs to no sequence. Devices are asked at the
// same time, each for one slice after the other. Errors: RESOURCE_EXHAUSTED if a device has not
// enough, with what to do about it, and those of BufferType::Allocate.
absl::StatusOr<CacheMemory> AllocateCaches(const Model& model, absl::Span<const CacheSlice> slices,
                                           int64_t pages, DType key_type, DType value_type);

}  // namespace weft
