// What a synthetic model consists of: the metadata keys and, in the order of the file, the tensors
// with their types and the distribution of their values. Nothing is written here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/gguf_metadata.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// All counts are positive but for those of the experts, which are 0 in a dense model.
struct SynthShape {
  int64_t embedding_length = 0;
  int64_t layer_count = 0;
  int64_t head_count = 0;
  int64_t head_count_kv = 0;
  int64_t feed_forward_length = 0;  // of one expert in a llama with experts
  int64_t vocabulary_size = 0;
  int64_t head_length = 0;
  int64_t expert_count = 0;
  int64_t expert_used_count = 0;
  int64_t expert_feed_forward_length = 0;  // qwen3moe only; 0 means feed_forward_length
  int64_t context_length = 8192;
};

// "160m", "1b", "3b" or "8b". Errors: INVALID_ARGUMENT for another name. Source: decision 30.
absl::StatusOr<SynthShape> NamedSynthShape(std::string_view name);

struct SynthModel {
  std::string architecture = "llama";  // llama, qwen2, qwen3, qwen3moe
  SynthShape shape;
  std::string type = "Q4_0";  // a type with a codec, or Q4_K_M; case is ignored
  bool tied_output = true;    // no output.weight
  bool attention_bias =
      false;  // biases of Q, K and V; qwen2 always has them, qwen3 and qwen3moe never
};

// A tensor and how its values are distributed: normally about `mean`.
struct SynthTensor {
  std::string name;
  TensorLayout layout;
  double mean = 0;  // other than 0 in norms only, which are F32
  double deviation = 0;
};

struct SynthPlan {
  GgufMetadata metadata;
  std::vector<SynthTensor> tensors;
};

// Deviations keep the activations near one: a projection has 1 / sqrt(inputs), those that add to
// the residual stream are smaller by sqrt(2 layers), and the embedding is such that logits have a
// deviation of 2. Tensor types: matrices have that of the model. With Q4_0 and Q4_K_M, embedding
// and output are Q6_K where their rows are whole blocks of it; with Q4_K_M, so are attn_v and
// ffn_down of every other layer. Norms, biases and routers are F32. Errors: INVALID_ARGUMENT for an
// unknown architecture or type, a count out of range, or rows that are not whole blocks of their
// type; the message names it. Source: decision 30; keys, names and shapes by spec G.2, G.5, G.6.
absl::StatusOr<SynthPlan> MakeSynthPlan(const SynthModel& model);

}  // namespace weft
