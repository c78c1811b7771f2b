// Free blocks of one chunk of an arena while it is planned: best fit, merging neighbours, growing
// at the end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weft {

class FreeList {
 public:
  // Bytes of the smallest free block that holds `bytes`; none: the chunk would have to grow.
  std::optional<int64_t> Fit(int64_t bytes) const;
  // By how much Take(bytes) would move the end if no free block fits.
  int64_t Growth(int64_t bytes) const;
  // The offset of `bytes` > 0 bytes: the smallest free block that holds them (the lowest of equal
  // ones), else new space at the end, using a free block there first.
  int64_t Take(int64_t bytes);
  // Gives back what Take returned.
  void Return(int64_t offset, int64_t bytes);
  // Largest end of anything taken so far.
  int64_t high_water() const { return end_; }
  // Everything was given back and merged.
  bool IsWhole() const;

 private:
  void Insert(int64_t offset, int64_t bytes);
  void Erase(int64_t offset, int64_t bytes);

  std::map<int64_t, int64_t> by_offset_;           // offset -> bytes
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (bytes, offset)
  int64_t end_ = 0;
};

}  // namespace weft
