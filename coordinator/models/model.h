// A model as the rest of weft sees it: hyperparameters, weights, caches, and graphs for any batch
// shape.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_file.h"
#include "common/graph/graph.h"
#include "coordinator/models/hyperparameters.h"
#include "coordinator/models/weight_table.h"

namespace weft {

// What a graph expects from the host each step, by input id. I32 throughout. Padding rows have
// position -1 and a KV slot in page 0, which is scratch (decision 14).
enum class ModelInput : int32_t {
  kTokens,      // [T] token ids; padding 0
  kPositions,   // [T]
  kSequences,   // [T] sequence slots; padding 0
  kSlots,       // [T] page * 16 + place in page
  kOutputRows,  // [R] which of the T tokens get logits; only in graphs with R > 0
  kChanged,     // [C, R] ids whose logits the sampler will change; padding -1; only in graphs of
                // candidates with C > 0
};
inline constexpr int kModelInputCount = 6;

// The size of a graph. The same shape always gives the same graph.
struct GraphShape {
  int64_t tokens = 1;              // T
  int64_t outputs = 1;             // R, 0 to T
  int64_t sequences = 1;           // rows of the page table
  int64_t pages_per_sequence = 1;  // columns of the page table
  int64_t pages = 2;               // in each cache
  int64_t context = 16;            // context size of the run, for rope factors that depend on it
  int64_t candidates = 0;          // most of an output row; 0: the graph gives all logits
  int64_t changed = 0;             // C
  bool hidden = false;             // gives the states that logits are made of, not logits
  // The first and the second half of the tokens one beside the other, layer by layer, so that one
  // computes while the other's sums travel; T is even. Rows of a sequence follow each other.
  bool halves = false;
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
  friend bool operator==(const GraphShape&, const GraphShape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const GraphShape& s) {
    return H::combine(std::move(h), s.tokens, s.outputs, s.sequences, s.pages_per_sequence, s.pages,
                      s.context, s.candidates, s.changed, s.hidden, s.halves, s.key_type,
                      s.value_type);
  }
};

// One paged tensor of a layer. Its id is its position in Model::caches().
struct CacheSpec {
  int32_t layer = 0;
  bool is_value = false;
  int64_t head = 0;                          // elements of a row
  int64_t n_head = 0;                        // KV heads
  Extents PageExtents(int64_t pages) const;  // [head, 16, n_head, pages]
};

struct ModelGraph {
  Graph graph;
  // [n_vocab, R] F32; kNoNode for R = 0. Where the shape asks for hidden states these are in its
  // place: [n_embd, R] F32, behind the last norm.
  NodeId logits = kNoNode;
  // [words, R] F32, rows as common/graph/candidate_layout.h says: the output in place of the
  // logits; kNoNode unless the shape has candidates.
  NodeId candidates = kNoNode;
};

struct Architecture;  // model_registry.h

class Model {
 public:
  // Reads the header of `file`, which must outlive the model.
  // Errors: UNIMPLEMENTED for an unknown architecture, listing the known ones; INVALID_ARGUMENT or
  // NOT_FOUND naming the key or tensor at fault.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const GgufFile& file);

  const Hyperparameters& hyperparameters() const { return hyperparameters_; }
  absl::Span<const Weight> weights() const { return weights_.weights(); }
  const WeightTable& weight_table() const { return weights_; }
  absl::Span<const CacheSpec> caches() const { return caches_; }
  const GgufFile& file() const { return weights_.file(); }

  absl::StatusOr<ModelGraph> BuildGraph(const GraphShape& shape) const;

 private:
  Model(const GgufFile& file, const Architecture& architecture)
      : architecture_(architecture), weights_(file) {}

  const Architecture& architecture_;
  Hyperparameters hyperparameters_;
  WeightTable weights_;
  std::vector<CacheSpec> caches_;
};

}  // namespace weft
