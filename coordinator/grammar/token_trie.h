// The bytes of all tokens of a vocabulary as a trie, so that a grammar is asked once about a
// beginning that many tokens share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace weft {

// Immutable; built once for a tokenizer and shared. Tokens without bytes and those
// longer than kLongestToken are not in it, so no grammar allows them.
class TokenTrie {
 public:
  static constexpr size_t kLongestToken = 512;

  // A node in the order of a walk that goes down first. Its tokens are token_ids()[first_token] up
  // to the first_token of the next node.
  struct Node {
    int32_t skip = 0;  // the next node that is not below this one
    int32_t first_token = 0;
    uint16_t depth = 0;  // bytes from the root; the nodes of single bytes have 1
    uint8_t byte = 0;
  };

  // `bytes_of` says what each id of [0, size) adds to a text; `ends` which ids end it.
  TokenTrie(int32_t size, absl::FunctionRef<std::string(int32_t)> bytes_of,
            absl::FunctionRef<bool(int32_t)> ends);

  int32_t size() const { return size_; }
  // Ends with a node of depth 0 behind all.
  absl::Span<const Node> nodes() const { return nodes_; }
  absl::Span<const int32_t> token_ids() const { return token_ids_; }
  absl::Span<const int32_t> end_tokens() const { return end_tokens_; }
  bool IsEnd(int32_t id) const;
  // The bytes of a token that is in the trie; empty for any other id.
  std::string_view BytesOf(int32_t id) const;

 private:
  int32_t size_;
  std::vector<Node> nodes_;
  std::vector<int32_t> token_ids_;
  std::vector<int32_t> end_tokens_;  // ascending
  std::string bytes_;                // of all tokens
  std::vector<uint32_t> offsets_;    // [size + 1] into bytes_
};

}  // namespace weft
