#include "tests/support/fake_memory.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr uint8_t kMask = 0xA5;
// Every F16, BF16 and F32 made of these bytes is a NaN, every integer is -1.
constexpr uint8_t kPoison = 0xFF;

void Mask(const uint8_t* from, uint8_t* to, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i) to[i] = from[i] ^ kMask;
}

}  // namespace

FakeBuffer::FakeBuffer(BufferType& type, BufferUsage usage, int64_t bytes,
                       std::function<void(int64_t)> freed)
    : type_(type),
      usage_(usage),
      masked_(static_cast<size_t>(bytes), kPoison ^ kMask),
      freed_(std::move(freed)) {}

FakeBuffer::~FakeBuffer() {
  std::fill(masked_.begin(), masked_.end(), kPoison);
  std::fill(plain_.begin(), plain_.end(), kPoison);
  freed_(size());
}

absl::Status FakeBuffer::Set(int64_t offset, const void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  Mask(static_cast<const uint8_t*>(data), masked_.data() + offset, bytes);
  MutexLock lock(mutex_);
  plain_.clear();
  return absl::OkStatus();
}

absl::Status FakeBuffer::Get(int64_t offset, void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  Mask(masked_.data() + offset, static_cast<uint8_t*>(data), bytes);
  return absl::OkStatus();
}

absl::Status FakeBuffer::Fill(int64_t offset, uint8_t value, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  std::fill_n(masked_.data() + offset, bytes, static_cast<uint8_t>(value ^ kMask));
  MutexLock lock(mutex_);
  plain_.clear();
  return absl::OkStatus();
}

uint8_t* FakeBuffer::PlainWeights() {
  if (usage_ != BufferUsage::kWeights) return nullptr;
  MutexLock lock(mutex_);
  if (plain_.empty() && !masked_.empty()) {
    plain_.resize(masked_.size());
    Mask(masked_.data(), plain_.data(), size());
  }
  return plain_.data();
}

}  // namespace weft
