#include "tests/unit/coordinator/meta/random_split.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/pass_pipeline.h"

namespace weft {
namespace {

bool IsSliced(const LeafAttributes& leaf) {
  return leaf.kind == LeafKind::kWeight || leaf.kind == LeafKind::kCache;
}

// Packed elements: blocks along axis 0.
Extents BlockExtents(const TensorLayout& layout) {
  Extents ne = layout.ne;
  ne[0] /= GetDTypeInfo(layout.dtype).block_elements;
  return ne;
}

// The bytes of the rank's slice of a packed tensor.
std::vector<uint8_t> SliceBytes(const uint8_t* whole, const TensorLayout& layout,
                                const SplitState& state, int32_t rank) {
  const int64_t size = *ByteExtent(layout);
  if (!state.cut()) return {whole, whole + size};
  const Extents ne = BlockExtents(layout);
  const int64_t unit = GetDTypeInfo(layout.dtype).block_bytes;
  const int64_t divide = state.axis == 0 ? GetDTypeInfo(layout.dtype).block_elements : 1;
  int64_t inner = unit;
  for (int d = 0; d < state.axis; ++d) inner *= ne[d];
  const int64_t run = inner * ne[state.axis];
  std::vector<uint8_t> slice;
  for (int64_t start = 0; start < size; start += run) {
    for (const CutSegment& segment : state.segments) {
      const IndexRange range = segment.ranks[rank];
      const uint8_t* first = whole + start + range.begin / divide * inner;
      slice.insert(slice.end(), first, first + range.size() / divide * inner);
    }
  }
  return slice;
}

// Of F32 values, what rank `rank` holds so that all together are the values, exactly in any order:
// the first minus the values, the second twice them.
std::vector<uint8_t> Addend(const std::vector<uint8_t>& whole, int32_t rank, int32_t ranks) {
  std::vector<float> values(whole.size() / sizeof(float));
  std::memcpy(values.data(), whole.data(), whole.size());
  const float factor = ranks == 1 ? 1.0f : rank == 0 ? -1.0f : rank == 1 ? 2.0f : 0.0f;
  for (float& value : values) value = factor == 0 ? 0 : value * factor;
  std::vector<uint8_t> bytes(whole.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

SplitState RandomCut(Random& random, int32_t axis, int64_t length, int64_t unit, int32_t ranks) {
  std::vector<int64_t> bounds = {0};
  for (int32_t r = 1; r < ranks; ++r) bounds.push_back(random.Between(0, length / unit) * unit);
  bounds.push_back(length);
  std::sort(bounds.begin(), bounds.end());
  return CutAtBounds(axis, bounds);
}

SplitRig::SplitRig(int32_t ranks, const Graph& graph, const std::vector<std::string>& arithmetics)
    : graph_(graph) {
  std::vector<Device*> siblings;
  for (int32_t r = 0; r < ranks; ++r) {
    NullDeviceOptions options;
    options.name = absl::StrCat("w", r, ".gpu0");
    options.host = absl::StrCat("w", r);
    if (!arithmetics.empty()) options.arithmetic = arithmetics[r];
    devices_.push_back(std::make_unique<NullDevice>(options));
    siblings.push_back(devices_.back().get());
  }
  NullDeviceOptions options;
  options.name = "local.cpu0";
  options.kind = DeviceKind::kCpu;
  cpu_ = std::make_unique<NullDevice>(options);
  auto meta = MetaDevice::Create("tp0", siblings);
  WEFT_CHECK(meta.ok());
  meta_ = *std::move(meta);
  layout_.devices = siblings;
  layout_.devices.push_back(cpu_.get());
  layout_.ranks.resize(2);
  for (int32_t r = 0; r < ranks; ++r) layout_.ranks[0].push_back(r);
  layout_.ranks[1] = {ranks};
}

void SplitRig::Lay(NodeId id, const SplitState& state) {
  const LeafAttributes& leaf = *graph_.leaf(id);
  auto& list = leaf.kind == LeafKind::kWeight ? layout_.weights : layout_.caches;
  if (list.size() <= static_cast<size_t>(leaf.id)) list.resize(leaf.id + 1);
  LeafSlices slices{state, {}};
  for (int32_t r = 0; r < ranks(); ++r) {
    slices.ids.push_back(HasPart(state, r) ? static_cast<int32_t>(slices_.size()) : -1);
    if (HasPart(state, r)) slices_.push_back({id, r});
  }
  list[leaf.id] = std::move(slices);
}

void SplitRig::LayAtRandom(Random& random) {
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const LeafAttributes* leaf = graph_.leaf(NodeId{i});
    if (leaf == nullptr || !IsSliced(*leaf)) continue;
    const TensorLayout& layout = graph_.layout(NodeId{i});
    const auto axis = static_cast<int32_t>(random.Between(0, 3));
    const int64_t unit = axis == 0 ? GetDTypeInfo(layout.dtype).block_elements : 1;
    if (layout.ne[axis] <= unit || leaf->kind == LeafKind::kCache) {
      Lay(NodeId{i}, SplitState::Mirrored());
    } else {
      Lay(NodeId{i}, RandomCut(random, axis, layout.ne[axis], unit, ranks()));
    }
  }
}

absl::StatusOr<std::unique_ptr<RankGraph>> SplitRig::Expand(DType wire,
                                                            ExchangeKind exchange) const {
  RankLayout layout = layout_;
  layout.exchange = exchange;
  PlanInput input;
  input.options.wire = wire;
  input.graph = &graph_;
  input.devices = {meta_.get(), cpu_.get()};
  input.leafs.resize(graph_.nodes().size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const NodeId id{i};
    const LeafAttributes* leaf = graph_.leaf(id);
    if (leaf != nullptr && IsSliced(*leaf)) {
      input.leafs[i] = {&meta_->buffer_type(), leaf->kind == LeafKind::kWeight
                                                   ? BufferUsage::kWeights
                                                   : BufferUsage::kAny};
    }
    if (graph_.Executes(id)) input.pins.push_back({id, 0});
  }
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  Plan plan;
  const PassPipeline passes;
  RETURN_IF_ERROR(passes.Run(context, plan, {}).status());
  return ExpandRanks(context, plan, layout);
}

void SplitRig::FillLeaf(const Graph& graph, NodeId id, const HostGraph& whole,
                        HostGraph& host) const {
  const LeafAttributes& leaf = *graph.leaf(id);
  NodeId from = kNoNode;
  SplitState state;
  int32_t rank = 0;
  if (IsSliced(leaf)) {
    from = slices_[leaf.id].leaf;
    rank = slices_[leaf.id].rank;
    const LeafAttributes& old = *graph_.leaf(from);
    state = (old.kind == LeafKind::kWeight ? layout_.weights : layout_.caches)[old.id].state;
  } else {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* other = graph_.leaf(NodeId{i});
      if (other != nullptr && *other == leaf) from = NodeId{i};
    }
  }
  std::vector<uint8_t> bytes =
      SliceBytes(whole.data()[Index(from)], graph_.layout(from), state, rank);
  if (state.partial()) bytes = Addend(bytes, rank, ranks());
  WEFT_CHECK(bytes.size() == host.bytes(id).size());
  std::copy(bytes.begin(), bytes.end(), host.bytes(id).begin());
}

absl::StatusOr<std::vector<std::vector<float>>> SplitRig::Run(const RankGraph& expanded,
                                                              const HostGraph& whole) const {
  const Graph& graph = expanded.graph;
  HostGraph host(graph);
  std::vector<NodeId> outputs;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.IsLeaf(NodeId{i})) FillLeaf(graph, NodeId{i}, whole, host);
    if (graph.node(NodeId{i}).output) outputs.push_back(NodeId{i});
  }
  RETURN_IF_ERROR(host.Run());
  std::vector<std::vector<float>> results;
  for (const RankOutput& output : expanded.outputs) {
    if (output.state.mirrored()) {
      results.push_back(host.F32(outputs[output.parts[0]]));
      continue;
    }
    const SplitState& state = output.state;
    int64_t inner = 1;
    for (int d = 0; d < state.axis; ++d) inner *= output.whole[d];
    const int64_t run = inner * output.whole[state.axis];
    std::vector<float> result(static_cast<size_t>(ElementCount(output.whole)));
    for (int32_t r = 0; r < ranks(); ++r) {
      if (output.parts[r] < 0) continue;
      const std::vector<float> part = host.F32(outputs[output.parts[r]]);
      size_t at = 0;
      for (int64_t start = 0; start < static_cast<int64_t>(result.size()); start += run) {
        for (const CutSegment& segment : state.segments) {
          const auto count = static_cast<size_t>(segment.ranks[r].size() * inner);
          std::copy_n(part.begin() + static_cast<int64_t>(at), count,
                      result.begin() + start + segment.ranks[r].begin * inner);
          at += count;
        }
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::string SplitRig::Text() const {
  std::string text;
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    absl::StrAppend(&text, "weight ", i, " ", SplitText(layout_.weights[i].state), "\n");
  }
  return text;
}

}  // namespace weft
