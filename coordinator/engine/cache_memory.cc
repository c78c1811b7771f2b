#include "coordinator/engine/cache_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/device/device.h"

namespace weft {
namespace {

// One slice to get memory for.
struct Wanted {
  size_t slice = 0;
  int64_t bytes = 0;
};

struct OnDevice {
  Device* device = nullptr;
  std::vector<Wanted> wanted;
};

absl::StatusOr<int64_t> SliceBytes(const Model& model, const CacheSlice& slice, int64_t pages,
                                   DType dtype) {
  CacheSpec cache = model.caches()[slice.cache];
  cache.n_head = slice.n_head;
  ASSIGN_OR_RETURN(const TensorLayout layout, PackedLayout(dtype, cache.PageExtents(pages)));
  return slice.device->buffer_type().TensorBytes(layout);
}

std::vector<Wanted>& Find(Device* device, std::vector<OnDevice>& all) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const OnDevice& d) { return d.device == device; });
  if (found != all.end()) return found->wanted;
  return all.emplace_back(OnDevice{device, {}}).wanted;
}

absl::Status NotEnough(const Model& model, const CacheSlice& slice, int64_t pages, int64_t bytes,
                       const absl::Status& why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "not enough memory for a KV cache of ", (pages - 1) * kPageTokens, " tokens (", bytes,
      " bytes for part of layer ", model.caches()[slice.cache].layer, " on ", slice.device->name(),
      "): ", why.message(), "; lower the context with -c or use -ctk q8_0 -ctv q8_0"));
}

absl::Status AllocateOn(const OnDevice& part, const Model& model,
                        absl::Span<const CacheSlice> slices, int64_t pages,
                        std::vector<std::unique_ptr<Buffer>>& buffers) {
  for (const Wanted& wanted : part.wanted) {
    absl::StatusOr<std::unique_ptr<Buffer>> buffer =
        part.device->buffer_type().Allocate(wanted.bytes, BufferUsage::kAny);
    if (absl::IsResourceExhausted(buffer.status())) {
      return NotEnough(model, slices[wanted.slice], pages, wanted.bytes, buffer.status());
    }
    RETURN_IF_ERROR(buffer.status());
    buffers[wanted.slice] = *std::move(buffer);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CacheMemory> AllocateCaches(const Model& model, absl::Span<const CacheSlice> slices,
                                           int64_t pages, DType key_type, DType value_type) {
  CacheMemory memory;
  memory.buffers.resize(slices.size());
  std::vector<OnDevice> devices;
  for (size_t i = 0; i < slices.size(); ++i) {
    const bool value = model.caches()[slices[i].cache].is_value;
    ASSIGN_OR_RETURN(const int64_t bytes,
                     SliceBytes(model, slices[i], pages, value ? value_type : key_type));
    memory.bytes += bytes;
    Find(slices[i].device, devices).push_back({i, bytes});
  }
  RETURN_IF_ERROR(RunParallel(devices.size(), [&](size_t d) {
    return AllocateOn(devices[d], model, slices, pages, memory.buffers);
  }));
  return memory;
}

}  // namespace weft
