#include "coordinator/grammar/token_trie.h"

#include <algorithm>
#include <numeric>

namespace weft {

TokenTrie::TokenTrie(int32_t size, absl::FunctionRef<std::string(int32_t)> bytes_of,
                     absl::FunctionRef<bool(int32_t)> ends)
    : size_(size) {
  offsets_.push_back(0);
  for (int32_t id = 0; id < size; ++id) {
    if (ends(id)) {
      end_tokens_.push_back(id);
    } else {
      const std::string bytes = bytes_of(id);
      if (bytes.size() <= kLongestToken) bytes_ += bytes;
    }
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  std::vector<int32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
    const std::string_view x = BytesOf(a), y = BytesOf(b);
    return x != y ? x < y : a < b;
  });
  std::vector<int32_t> path;  // open nodes, by depth
  std::string_view last;
  const auto close_to = [&](size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].skip = static_cast<int32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (const int32_t id : order) {
    const std::string_view bytes = BytesOf(id);
    if (bytes.empty()) continue;
    const auto common = static_cast<size_t>(
        std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end()).first - bytes.begin());
    close_to(common);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<int32_t>(token_ids_.size()),
                        static_cast<uint16_t>(depth + 1), static_cast<uint8_t>(bytes[depth])});
    }
    token_ids_.push_back(id);
    last = bytes;
  }
  close_to(0);
  nodes_.push_back(
      {static_cast<int32_t>(nodes_.size()) + 1, static_cast<int32_t>(token_ids_.size()), 0, 0});
}

bool TokenTrie::IsEnd(int32_t id) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), id);
}

std::string_view TokenTrie::BytesOf(int32_t id) const {
  if (id < 0 || id >= size_) return {};
  return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

}  // namespace weft
