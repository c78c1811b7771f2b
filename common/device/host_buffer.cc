#include "common/device/host_buffer.h"

#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr auto kAlignValue = static_cast<std::align_val_t>(HostBufferType::kAlignment);

struct FreeAligned {
  void operator()(uint8_t* data) const { ::operator delete[](data, kAlignValue); }
};

class OwnedHostBuffer final : public HostBuffer {
 public:
  OwnedHostBuffer(BufferType& type, BufferUsage usage, int64_t bytes,
                  std::unique_ptr<uint8_t[], FreeAligned> owned)
      : HostBuffer(type, usage, owned.get(), bytes), owned_(std::move(owned)) {}

 private:
  std::unique_ptr<uint8_t[], FreeAligned> owned_;
};

}  // namespace

absl::Status HostBuffer::Set(int64_t offset, const void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  if (bytes > 0) std::memmove(data_ + offset, data, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostBuffer::Get(int64_t offset, void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  if (bytes > 0) std::memmove(data, data_ + offset, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostBuffer::Fill(int64_t offset, uint8_t value, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  if (bytes > 0) std::memset(data_ + offset, value, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

int64_t HostBufferType::TensorBytes(const TensorLayout& layout) const {
  return ByteExtent(layout).value_or(0);
}

absl::StatusOr<std::unique_ptr<Buffer>> HostBufferType::Allocate(int64_t bytes, BufferUsage usage) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat(name_, ": ", bytes, " bytes"));
  std::unique_ptr<uint8_t[], FreeAligned> owned;
  if (bytes <= max_bytes_) {
    // An empty buffer still has an address of its own.
    const auto size = static_cast<size_t>(bytes == 0 ? kAlignment : bytes);
    owned.reset(static_cast<uint8_t*>(::operator new[](size, kAlignValue, std::nothrow)));
  }
  if (owned == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(name_, ": cannot allocate ", bytes, " bytes"));
  }
  return std::make_unique<OwnedHostBuffer>(*this, usage, bytes, std::move(owned));
}

absl::StatusOr<std::unique_ptr<Buffer>> HostBufferType::Wrap(void* data, int64_t bytes,
                                                             BufferUsage usage) {
  if (bytes < 0 || data == nullptr || reinterpret_cast<uintptr_t>(data) % 32 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": cannot wrap ", bytes, " bytes at a misaligned or null address"));
  }
  return std::make_unique<HostBuffer>(*this, usage, static_cast<uint8_t*>(data), bytes);
}

}  // namespace weft
