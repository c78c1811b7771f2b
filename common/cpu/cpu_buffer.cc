#include "common/cpu/cpu_buffer.h"

#include <sys/mman.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/device/host_buffer.h"

namespace weft {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// Memory for `bytes` > 0, or null; std::free gives it back. Whole huge pages from kHugePage on.
uint8_t* Reserve(int64_t bytes) {
  const bool large = bytes >= kHugePage;
  const int64_t alignment = large ? kHugePage : CpuBufferType::kAlignment;
  const std::optional<int64_t> rounded = CheckedAlignUp(bytes, alignment);
  if (!rounded) return nullptr;
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(*rounded));
  // Advice: without huge pages everything works as well, only slower.
  if (large && data != nullptr) madvise(data, static_cast<size_t>(*rounded), MADV_HUGEPAGE);
  return static_cast<uint8_t*>(data);
}

}  // namespace

class CpuBufferType::AllocatedBuffer final : public HostBuffer {
 public:
  // `reserved` bytes were taken from the type and reserved at `data`.
  AllocatedBuffer(CpuBufferType& type, BufferUsage usage, uint8_t* data, int64_t bytes,
                  int64_t reserved)
      : HostBuffer(type, usage, data, bytes), type_(type), reserved_(reserved) {}
  ~AllocatedBuffer() override {
    std::free(data());
    type_.used_bytes_.fetch_sub(reserved_);
  }

 private:
  CpuBufferType& type_;
  int64_t reserved_;
};

int64_t CpuBufferType::TensorBytes(const TensorLayout& layout) const {
  return ByteExtent(layout).value_or(0);
}

bool CpuBufferType::Take(int64_t bytes) {
  int64_t used = used_bytes_.load();
  do {
    if (bytes > limit_bytes_ - used) return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
  return true;
}

absl::StatusOr<std::unique_ptr<Buffer>> CpuBufferType::Allocate(int64_t bytes, BufferUsage usage) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat(name_, ": ", bytes, " bytes"));
  // An empty buffer still has an address of its own.
  const int64_t reserved = bytes == 0 ? kAlignment : bytes;
  if (!Take(reserved)) {
    return absl::ResourceExhaustedError(absl::StrCat(name_, ": ", bytes, " bytes do not fit, ",
                                                     used_bytes(), " of ", limit_bytes_,
                                                     " are in use"));
  }
  uint8_t* data = Reserve(reserved);
  if (data == nullptr) {
    used_bytes_.fetch_sub(reserved);
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, ": the system has no ", bytes, " bytes"));
  }
  return std::make_unique<AllocatedBuffer>(*this, usage, data, bytes, reserved);
}

absl::StatusOr<std::unique_ptr<Buffer>> CpuBufferType::Wrap(void* data, int64_t bytes,
                                                            BufferUsage usage) {
  if (bytes < 0 || (data == nullptr && bytes > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": cannot wrap ", bytes, " bytes"));
  }
  return std::make_unique<HostBuffer>(*this, usage, static_cast<uint8_t*>(data), bytes);
}

}  // namespace weft
