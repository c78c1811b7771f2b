// Which tokens may come next, for instance by a grammar. A sampler asks before it truncates.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

// A bit per token id: bit id % 64 of word id / 64.
class TokenMask {
 public:
  explicit TokenMask(int64_t size) : size_(size), words_((size + 63) / 64, 0) {}

  int64_t size() const { return size_; }
  // Ids beyond the mask are not in it.
  bool Contains(int64_t id) const {
    return id >= 0 && id < size_ && ((words_[id / 64] >> (id % 64)) & 1) != 0;
  }
  void Add(int64_t id) { words_[id / 64] |= uint64_t{1} << (id % 64); }
  bool empty() const {
    for (const uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  int64_t size_;
  std::vector<uint64_t> words_;
};

// Outlives the samplers that use it; whoever chooses a token tells it so.
class TokenFilter {
 public:
  virtual ~TokenFilter() = default;

  // Whether token `id` may come next. Errors: a limit is reached.
  virtual absl::StatusOr<bool> Allows(int32_t id) = 0;
  // All ids of [0, size) that may come next; what Allows says of each. Errors: as Allows.
  virtual absl::StatusOr<TokenMask> Mask(int64_t size) = 0;
};

}  // namespace weft
