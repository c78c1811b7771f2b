#include "coordinator/scheduler/free_list.h"

#include <iterator>

namespace weft {

void FreeList::Insert(int64_t offset, int64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void FreeList::Erase(int64_t offset, int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
}

std::optional<int64_t> FreeList::Fit(int64_t bytes) const {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  return fit->first;
}

int64_t FreeList::Growth(int64_t bytes) const {
  if (by_offset_.empty()) return bytes;
  const auto [last, size] = *std::prev(by_offset_.end());
  return last + size == end_ ? bytes - size : bytes;
}

bool FreeList::IsWhole() const {
  return end_ == 0 || (by_offset_.size() == 1 && by_offset_.begin()->first == 0 &&
                       by_offset_.begin()->second == end_);
}

int64_t FreeList::Take(int64_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit != by_size_.end()) {
    const auto [size, offset] = *fit;
    Erase(offset, size);
    if (size > bytes) Insert(offset + bytes, size - bytes);
    return offset;
  }
  int64_t offset = end_;
  if (!by_offset_.empty()) {
    const auto [last, size] = *std::prev(by_offset_.end());
    if (last + size == end_) {
      offset = last;
      Erase(last, size);
    }
  }
  end_ = offset + bytes;
  return offset;
}

void FreeList::Return(int64_t offset, int64_t bytes) {
  const auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto [before, size] = *std::prev(next);
    if (before + size == offset) {
      Erase(before, size);
      offset = before;
      bytes += size;
    }
  }
  const auto after = by_offset_.find(offset + bytes);
  if (after != by_offset_.end()) {
    const int64_t size = after->second;
    Erase(offset + bytes, size);
    bytes += size;
  }
  Insert(offset, bytes);
}

}  // namespace weft
