// The weights of a model: which tensors its graphs use, with shape, role and layer. A weight's id
// is its position here and is its identity everywhere; the name is how the file calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_file.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// What a weight is for: placement and split layouts go by role, never by name.
enum class WeightRole : uint8_t {
  kTokenEmbedding,
  kOutputNorm,
  kOutput,
  kRopeFactors,
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kQueryKeyValue,
  kQueryNorm,
  kKeyNorm,
  kAttentionOutput,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kRouter,
  kExpertGate,
  kExpertUp,
  kExpertGateUp,
  kExpertDown,
};

struct Weight {
  std::string name;
  TensorLayout layout;  // as in the file
  WeightRole role = WeightRole::kTokenEmbedding;
  bool bias = false;
  int32_t layer = -1;  // -1: not of a layer
  // Tensors of the file that lie behind each other in this weight; empty: the one of its name. One
  // of another name: the weight shares that tensor with others and may lie elsewhere than they.
  std::vector<std::string> parts;
};

class WeightTable {
 public:
  explicit WeightTable(const GgufFile& file) : file_(&file) {}

  // Adds tensor `name` of the file, which must have these extents and, where `f32` is set, this
  // type. Errors: NOT_FOUND "missing tensor 'N'"; INVALID_ARGUMENT with both shapes; UNIMPLEMENTED
  // for a type without kernels.
  absl::Status Require(std::string_view name, WeightRole role, int32_t layer, const Extents& ne,
                       bool f32 = false);
  // The same where the file has it, else nothing happens.
  absl::Status Allow(std::string_view name, WeightRole role, int32_t layer, const Extents& ne,
                     bool f32 = false);

  // Adds weight `name`, which the file has not, with the bytes of its tensor `tensor`: a use of it
  // with an id and a place of its own. Errors: as Require.
  absl::Status Share(std::string_view name, std::string_view tensor, WeightRole role, int32_t layer,
                     const Extents& ne, bool f32 = false);

  // A weight that the file has in one tensor `name` [a, b, n] or, as older files do, in n
  // tensors [a, b] of one type, named by `part`. Errors: as Require.
  absl::Status RequireStack(std::string_view name, const std::function<std::string(int64_t)>& part,
                            WeightRole role, int32_t layer, const Extents& ne);

  // Id of a weight by name, -1 if absent.
  int32_t Find(std::string_view name) const;
  absl::Span<const Weight> weights() const { return weights_; }
  const GgufFile& file() const { return *file_; }
  // The tensors of the file that a weight consists of, in order; never null.
  std::vector<const GgufTensor*> TensorsOf(const Weight& weight) const;

  // Names of tensors in the file that no graph uses.
  std::vector<std::string> Unused() const;

 private:
  void Add(Weight weight);

  const GgufFile* file_;
  std::vector<Weight> weights_;
  absl::flat_hash_map<std::string, int32_t> index_;
  absl::flat_hash_set<std::string> parts_;
};

}  // namespace weft
