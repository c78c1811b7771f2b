#include "common/device/buffer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/device/device.h"

namespace weft {
namespace {

// Large enough that the per-call cost of a device vanishes, small enough to matter to nobody.
constexpr int64_t kStagingBytes = int64_t{1} << 20;

absl::Status CopyThroughStaging(Buffer& source, int64_t source_offset, Buffer& destination,
                                int64_t destination_offset, int64_t bytes) {
  std::vector<uint8_t> staging(static_cast<size_t>(std::min(bytes, kStagingBytes)));
  // Where the ranges overlap in one buffer, a copy towards higher addresses starts at the end, so
  // that no byte is overwritten before it was read.
  const bool backwards = &source == &destination && destination_offset > source_offset;
  for (int64_t done = 0; done < bytes;) {
    const int64_t part = std::min(bytes - done, kStagingBytes);
    const int64_t at = backwards ? bytes - done - part : done;
    RETURN_IF_ERROR(source.Get(source_offset + at, staging.data(), part));
    RETURN_IF_ERROR(destination.Set(destination_offset + at, staging.data(), part));
    done += part;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRange(const Buffer& buffer, int64_t offset, int64_t bytes) {
  if (offset >= 0 && bytes >= 0 && offset <= buffer.size() && bytes <= buffer.size() - offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(bytes, " bytes at offset ", offset,
                                                 " leave a buffer of ", buffer.size(), " bytes (",
                                                 buffer.type().name(), ")"));
}

absl::Status CopyBuffer(Buffer& source, int64_t source_offset, Buffer& destination,
                        int64_t destination_offset, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(source, source_offset, bytes));
  RETURN_IF_ERROR(CheckRange(destination, destination_offset, bytes));
  if (bytes == 0) return absl::OkStatus();
  if (const auto* data = static_cast<const uint8_t*>(source.host_data()); data != nullptr) {
    return destination.Set(destination_offset, data + source_offset, bytes);
  }
  if (auto* data = static_cast<uint8_t*>(destination.host_data()); data != nullptr) {
    return source.Get(source_offset, data + destination_offset, bytes);
  }
  return CopyThroughStaging(source, source_offset, destination, destination_offset, bytes);
}

}  // namespace weft
