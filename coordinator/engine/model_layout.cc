#include "coordinator/engine/model_layout.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/meta/rank_cuts.h"
#include "coordinator/placement/layer_assignment.h"

namespace weft {
namespace {

// Feed-forward columns are kept together in this many where that leaves no rank empty.
constexpr int64_t kColumnPreference = 128;

// The cuts of one layer, each found once.
struct LayerCuts {
  std::vector<IndexRange> heads;     // of queries
  std::vector<IndexRange> kv_heads;  // those that the queries read; may overlap
  std::vector<IndexRange> columns;   // of the feed-forward, dense or of each expert
};

class Layouter {
 public:
  Layouter(const Model& model, absl::Span<const double> shares)
      : model_(model), numbers_(model.hyperparameters()), shares_(shares) {
    for (int64_t layer = 0; layer < numbers_.n_layer; ++layer) {
      layers_.push_back(CutLayer(static_cast<int32_t>(layer)));
    }
    // With the layers' own remainders in turn.
    vocabulary_ = CutBetweenRanks({.length = numbers_.n_vocab,
                                   .preferred = 1,
                                   .least = 1,
                                   .shares = shares_,
                                   .rotation = numbers_.n_layer % Ranks()});
  }

  ModelLayout Run() const {
    ModelLayout layout;
    for (const Weight& weight : model_.weights()) {
      layout.weights.push_back(Simplified(StateOf(weight)));
    }
    for (const CacheSpec& cache : model_.caches()) {
      const int64_t n_head_kv = numbers_.n_head_kv[cache.layer];
      layout.caches.push_back(
          Simplified(SplitState::Cut(2, {SegmentOf(layers_[cache.layer].kv_heads, n_head_kv, 1)})));
    }
    return layout;
  }

 private:
  int64_t Ranks() const { return static_cast<int64_t>(shares_.size()); }

  // Elements per block of that layer's weight of that role; 1 where it has none.
  int64_t BlockOf(WeightRole role, int32_t layer) const {
    for (const Weight& weight : model_.weights()) {
      if (weight.role == role && weight.layer == layer && !weight.bias) {
        return GetDTypeInfo(weight.layout.dtype).block_elements;
      }
    }
    return 1;
  }

  LayerCuts CutLayer(int32_t layer) const {
    LayerCuts cuts;
    const int64_t group = numbers_.group_size(layer);
    // Rows of the output projection are cut in whole blocks: so many heads at once.
    const int64_t block = BlockOf(WeightRole::kAttentionOutput, layer);
    const int64_t heads_at_once = block / std::gcd(block, numbers_.value_head);
    cuts.heads = CutBetweenRanks({.length = numbers_.n_head[layer],
                                  .preferred = std::lcm(group, heads_at_once),
                                  .least = heads_at_once,
                                  .shares = shares_,
                                  .rotation = layer % Ranks()});
    cuts.kv_heads = GroupsOf(cuts.heads, group);
    // One for all: then it needs no cut anywhere (decision 17).
    if (numbers_.n_head_kv[layer] == 1) cuts.kv_heads.assign(shares_.size(), {0, 1});
    const bool experts = numbers_.n_expert > 0;
    const int64_t down = BlockOf(experts ? WeightRole::kExpertDown : WeightRole::kDown, layer);
    cuts.columns = CutBetweenRanks({.length = Columns(layer),
                                    .preferred = std::lcm(down, kColumnPreference),
                                    .least = down,
                                    .shares = shares_,
                                    .rotation = layer % Ranks()});
    return cuts;
  }

  int64_t Columns(int32_t layer) const {
    return numbers_.n_expert > 0 ? numbers_.n_ff_expert : numbers_.n_ff[layer];
  }

  // Rows of a weight are along axis 1, elements of a bias along 0.
  static int32_t RowAxis(const Weight& weight) { return weight.bias ? 0 : 1; }

  SplitState Heads(const Weight& weight, int32_t axis, int64_t head) const {
    const LayerCuts& cuts = layers_[weight.layer];
    return SplitState::Cut(axis, {SegmentOf(cuts.heads, numbers_.n_head[weight.layer], head)});
  }

  SplitState KvHeads(const Weight& weight, int64_t head) const {
    const LayerCuts& cuts = layers_[weight.layer];
    return SplitState::Cut(RowAxis(weight),
                           {SegmentOf(cuts.kv_heads, numbers_.n_head_kv[weight.layer], head)});
  }

  // Queries, keys and values behind each other.
  SplitState Fused(const Weight& weight) const {
    SplitState state = SplitState::Cut(RowAxis(weight), {});
    int64_t at = 0;
    const LayerCuts& cuts = layers_[weight.layer];
    const auto add = [&](absl::Span<const IndexRange> ranges, int64_t count, int64_t head) {
      state.segments.push_back(Shifted(SegmentOf(ranges, count, head), at));
      at = state.segments.back().whole.end;
    };
    add(cuts.heads, numbers_.n_head[weight.layer], numbers_.key_head);
    add(cuts.kv_heads, numbers_.n_head_kv[weight.layer], numbers_.key_head);
    add(cuts.kv_heads, numbers_.n_head_kv[weight.layer], numbers_.value_head);
    return state;
  }

  // Feed-forward columns along `axis`, twice where gate and up are one tensor.
  SplitState Columns(const Weight& weight, int32_t axis) const {
    const int64_t length = Columns(weight.layer);
    SplitState state = SplitState::Cut(axis, {});
    for (int64_t at = 0; at < weight.layout.ne[axis]; at += length) {
      state.segments.push_back(Shifted(SegmentOf(layers_[weight.layer].columns, length, 1), at));
    }
    return state;
  }

  SplitState StateOf(const Weight& weight) const {
    switch (weight.role) {
      case WeightRole::kTokenEmbedding:
      case WeightRole::kOutput:
        return SplitState::Cut(RowAxis(weight), {SegmentOf(vocabulary_, numbers_.n_vocab, 1)});
      case WeightRole::kQuery:
        return Heads(weight, RowAxis(weight), numbers_.key_head);
      case WeightRole::kKey:
        return KvHeads(weight, numbers_.key_head);
      case WeightRole::kValue:
        return KvHeads(weight, numbers_.value_head);
      case WeightRole::kQueryKeyValue:
        return Fused(weight);
      case WeightRole::kAttentionOutput:
        if (weight.bias) break;  // added to the sum
        return Heads(weight, 0, numbers_.value_head);
      case WeightRole::kGate:
      case WeightRole::kUp:
      case WeightRole::kExpertGate:
      case WeightRole::kExpertUp:
      case WeightRole::kExpertGateUp:
        return Columns(weight, RowAxis(weight));
      case WeightRole::kDown:
      case WeightRole::kExpertDown:
        if (weight.bias) break;
        return Columns(weight, 0);
      case WeightRole::kOutputNorm:
      case WeightRole::kRopeFactors:
      case WeightRole::kAttentionNorm:
      case WeightRole::kQueryNorm:
      case WeightRole::kKeyNorm:
      case WeightRole::kFeedForwardNorm:
      case WeightRole::kRouter:
        break;
    }
    return SplitState::Mirrored();
  }

  const Model& model_;
  const Hyperparameters& numbers_;
  const absl::Span<const double> shares_;
  std::vector<LayerCuts> layers_;
  std::vector<IndexRange> vocabulary_;
};

}  // namespace

absl::StatusOr<ModelLayout> LayOutModel(const Model& model, absl::Span<const double> shares) {
  if (shares.empty()) return absl::InvalidArgumentError("a tensor split over no ranks");
  RETURN_IF_ERROR(CheckShares(shares));
  return Layouter(model, shares).Run();
}

}  // namespace weft
