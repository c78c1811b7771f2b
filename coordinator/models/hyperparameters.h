// What a model is, as numbers: read from GGUF metadata and checked before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/gguf_metadata.h"
#include "common/graph/op_attributes.h"

namespace weft {

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn, kLongRope };
enum class ExpertGating : uint8_t { kSoftmax, kSigmoid, kSoftmaxOfSelected };

// Limits that keep a hostile header from asking for absurd work (spec G.2).
inline constexpr int64_t kMaxLayers = 512;
inline constexpr int64_t kMaxExperts = 1024;
inline constexpr int64_t kMaxDimension = int64_t{1} << 24;
inline constexpr int64_t kMaxContext = int64_t{1} << 26;

// How hidden states become the embedding of a text.
enum class Pooling : uint8_t {
  kNone,   // a way that is not known here
  kMean,   // also where the model says nothing
  kFirst,  // the state of the first token
  kLast,   // of the last
};

// Extents are element counts. Per-layer values are vectors of n_layer entries.
struct Hyperparameters {
  std::string architecture;
  std::string name;  // general.name, may be empty
  int64_t n_layer = 0;
  int64_t n_embd = 0;
  Pooling pooling = Pooling::kMean;
  int64_t n_vocab = 0;
  int64_t context_length = 0;  // as trained
  std::vector<int64_t> n_head;
  std::vector<int64_t> n_head_kv;
  std::vector<int64_t> n_ff;
  int64_t key_head = 0;    // elements of a query or key head
  int64_t value_head = 0;  // elements of a value head
  float rms_epsilon = 0;
  float attention_scale = 0;  // of the scores

  // Rotary embedding (spec G.1). `rope` holds all but the frequency factors, which are a weight.
  RopeScaling rope_scaling = RopeScaling::kLinear;
  RopeAttributes rope;

  // Mixture of experts; n_expert 0: dense.
  int64_t n_expert = 0;
  int64_t n_expert_used = 0;
  int64_t n_ff_expert = 0;
  ExpertGating expert_gating = ExpertGating::kSoftmax;
  bool expert_weights_norm = false;
  float expert_weights_scale = 1;

  int64_t group_size(int64_t layer) const { return n_head[layer] / n_head_kv[layer]; }
};

// Tokens that the model knows: the number stated under `key`, else that of the tokenizer's tokens.
// The token embedding's rows (0: unknown) decide where neither is there, and where the tokenizer
// has as many. Errors: INVALID_ARGUMENT naming key and value.
absl::StatusOr<int64_t> VocabularySize(const GgufMetadata& metadata, const std::string& key,
                                       int64_t embedding_rows);

// Reads the keys common to all architectures (spec G.1 and G.2) under the prefix
// general.architecture, n_vocab excepted. Architecture defaults that differ are set by the
// architecture before or after. Errors: INVALID_ARGUMENT naming key and value.
absl::StatusOr<Hyperparameters> ReadCommonHyperparameters(const GgufMetadata& metadata);

}  // namespace weft
