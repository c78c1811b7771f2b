// The attributes of each op: one pair of functions for each struct of OpAttributes.
#include <array>
#include <utility>

#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/extents_codec.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/graph_message.h"

namespace weft {
namespace {

using Result = absl::StatusOr<OpAttributes>;

// An enumeration that travels as a number; its enumerators are 0 to `last`.
template <typename Enum>
absl::StatusOr<Enum> DecodeEnum(absl::string_view name, uint32_t value, Enum last) {
  RETURN_IF_ERROR(CheckField(name, value, 0, static_cast<int64_t>(last)));
  return static_cast<Enum>(value);
}

// A function that travels by name; the enumerators are 0 to count - 1.
template <typename Enum>
absl::StatusOr<Enum> DecodeFunction(const std::string& name, int count,
                                    std::string_view (*name_of)(Enum)) {
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    if (name_of(value) == name) return value;
  }
  return BadField("function", absl::StrCat("'", CleanText(name, 32), "'"), "no such function");
}

template <size_t kCount>
absl::Status DecodeInts(absl::string_view name,
                        const google::protobuf::RepeatedField<int32_t>& field,
                        std::array<int32_t, kCount>& values) {
  if (field.size() != static_cast<int>(kCount)) {
    return BadField(name, absl::StrCat("(", field.size(), " values)"),
                    absl::StrCat("want ", kCount, " values"));
  }
  std::copy(field.begin(), field.end(), values.begin());
  return absl::OkStatus();
}

// --- Leafs, views, moves ---

void Put(const NoAttributes&, proto::Node&) {}
Result TakeNone(const proto::Node&) { return OpAttributes(NoAttributes{}); }

void Put(const LeafAttributes& leaf, proto::Node& node) {
  node.mutable_leaf()->set_kind(static_cast<uint32_t>(leaf.kind));
  node.mutable_leaf()->set_id(leaf.id);
}
Result TakeLeaf(const proto::Node& node) {
  LeafAttributes leaf;
  ASSIGN_OR_RETURN(leaf.kind, DecodeEnum("kind", node.leaf().kind(), LeafKind::kPageTable));
  leaf.id = node.leaf().id();
  RETURN_IF_ERROR(CheckNotNegative("id", leaf.id));
  return OpAttributes(leaf);
}

void Put(const ViewAttributes& view, proto::Node& node) {
  EncodeExtents(view.ne, *node.mutable_view()->mutable_ne());
  EncodeExtents(view.nb, *node.mutable_view()->mutable_nb());
  node.mutable_view()->set_offset(view.offset);
}
Result TakeView(const proto::Node& node) {
  ViewAttributes view;
  ASSIGN_OR_RETURN(view.ne, DecodeExtents("ne", node.view().ne()));
  ASSIGN_OR_RETURN(view.nb, DecodeExtents("nb", node.view().nb()));
  view.offset = node.view().offset();
  RETURN_IF_ERROR(CheckNotNegative("offset", view.offset));
  return OpAttributes(view);
}

void Put(const ReshapeAttributes& reshape, proto::Node& node) {
  EncodeExtents(reshape.ne, *node.mutable_reshape()->mutable_ne());
}
Result TakeReshape(const proto::Node& node) {
  ReshapeAttributes reshape;
  ASSIGN_OR_RETURN(reshape.ne, DecodeExtents("ne", node.reshape().ne()));
  return OpAttributes(reshape);
}

void Put(const PermuteAttributes& permute, proto::Node& node) {
  node.mutable_permute()->mutable_axes()->Assign(permute.axes.begin(), permute.axes.end());
}
Result TakePermute(const proto::Node& node) {
  PermuteAttributes permute;
  RETURN_IF_ERROR(DecodeInts("axes", node.permute().axes(), permute.axes));
  for (const int32_t axis : permute.axes) RETURN_IF_ERROR(CheckField("axes", axis, 0, 3));
  return OpAttributes(permute);
}

void Put(const CopyAttributes& copy, proto::Node& node) {
  node.mutable_copy()->set_type(static_cast<uint32_t>(GetDTypeInfo(copy.dtype).gguf_id));
}
Result TakeCopy(const proto::Node& node) {
  CopyAttributes copy;
  ASSIGN_OR_RETURN(copy.dtype, DecodeDType("type", node.copy().type()));
  return OpAttributes(copy);
}

void Put(const RepeatAttributes& repeat, proto::Node& node) {
  EncodeExtents(repeat.ne, *node.mutable_repeat()->mutable_ne());
}
Result TakeRepeat(const proto::Node& node) {
  RepeatAttributes repeat;
  ASSIGN_OR_RETURN(repeat.ne, DecodeExtents("ne", node.repeat().ne()));
  return OpAttributes(repeat);
}

void Put(const AxisAttributes& axis, proto::Node& node) {
  node.mutable_axis()->set_axis(axis.axis);
}
Result TakeAxis(const proto::Node& node) {
  RETURN_IF_ERROR(CheckField("axis", node.axis().axis(), 0, 3));
  return OpAttributes(AxisAttributes{node.axis().axis()});
}

void Put(const PadAttributes& pad, proto::Node& node) {
  EncodeExtents(pad.after, *node.mutable_pad()->mutable_ne());
}
Result TakePad(const proto::Node& node) {
  PadAttributes pad;
  ASSIGN_OR_RETURN(pad.after, DecodeExtents("ne", node.pad().ne()));
  return OpAttributes(pad);
}

void Put(const FillAttributes& fill, proto::Node& node) {
  EncodeExtents(fill.ne, *node.mutable_fill()->mutable_ne());
  node.mutable_fill()->set_value(fill.value);
}
Result TakeFill(const proto::Node& node) {
  FillAttributes fill;
  ASSIGN_OR_RETURN(fill.ne, DecodeExtents("ne", node.fill().ne()));
  fill.value = node.fill().value();
  return OpAttributes(fill);
}

void Put(const ReceiveAttributes& receive, proto::Node& node) {
  node.mutable_receive()->set_type(static_cast<uint32_t>(GetDTypeInfo(receive.dtype).gguf_id));
  EncodeExtents(receive.ne, *node.mutable_receive()->mutable_ne());
}
Result TakeReceive(const proto::Node& node) {
  ReceiveAttributes receive;
  ASSIGN_OR_RETURN(receive.dtype, DecodeDType("type", node.receive().type()));
  ASSIGN_OR_RETURN(receive.ne, DecodeExtents("ne", node.receive().ne()));
  return OpAttributes(receive);
}

// --- Element by element, along rows ---

void Put(const ScaleAttributes& scale, proto::Node& node) {
  node.mutable_scale()->set_factor(scale.factor);
  node.mutable_scale()->set_bias(scale.bias);
}
Result TakeScale(const proto::Node& node) {
  return OpAttributes(ScaleAttributes{node.scale().factor(), node.scale().bias()});
}

void Put(const ClampAttributes& clamp, proto::Node& node) {
  node.mutable_clamp()->set_low(clamp.low);
  node.mutable_clamp()->set_high(clamp.high);
}
Result TakeClamp(const proto::Node& node) {
  return OpAttributes(ClampAttributes{node.clamp().low(), node.clamp().high()});
}

void Put(const UnaryAttributes& unary, proto::Node& node) {
  node.mutable_unary()->set_function(std::string(UnaryName(unary.kind)));
}
Result TakeUnary(const proto::Node& node) {
  UnaryAttributes unary;
  ASSIGN_OR_RETURN(unary.kind, DecodeFunction(node.unary().function(), kUnaryKindCount, UnaryName));
  return OpAttributes(unary);
}

void Put(const GluAttributes& glu, proto::Node& node) {
  proto::GluAttributes& message = *node.mutable_glu();
  message.set_function(std::string(GluName(glu.kind)));
  message.set_swapped(glu.swapped);
  message.set_alpha(glu.alpha);
  message.set_limit(glu.limit);
}
Result TakeGlu(const proto::Node& node) {
  const proto::GluAttributes& message = node.glu();
  GluAttributes glu;
  constexpr int kCount = static_cast<int>(GluKind::kSwigluOai) + 1;
  ASSIGN_OR_RETURN(glu.kind, DecodeFunction(message.function(), kCount, GluName));
  glu.swapped = message.swapped();
  glu.alpha = message.alpha();
  glu.limit = message.limit();
  return OpAttributes(glu);
}

void Put(const NormAttributes& norm, proto::Node& node) {
  node.mutable_norm()->set_epsilon(norm.epsilon);
}
Result TakeNorm(const proto::Node& node) {
  return OpAttributes(NormAttributes{node.norm().epsilon()});
}

void Put(const SoftMaxAttributes& soft_max, proto::Node& node) {
  node.mutable_soft_max()->set_scale(soft_max.scale);
}
Result TakeSoftMax(const proto::Node& node) {
  return OpAttributes(SoftMaxAttributes{node.soft_max().scale()});
}

void Put(const TopKAttributes& top_k, proto::Node& node) { node.mutable_top_k()->set_k(top_k.k); }
Result TakeTopK(const proto::Node& node) {
  RETURN_IF_ERROR(CheckNotNegative("k", node.top_k().k()));
  return OpAttributes(TopKAttributes{node.top_k().k()});
}

void Put(const SampleCandidatesAttributes& candidates, proto::Node& node) {
  node.mutable_sample_candidates()->set_k(candidates.k);
  node.mutable_sample_candidates()->set_first_id(candidates.first_id);
}
Result TakeSampleCandidates(const proto::Node& node) {
  const proto::SampleCandidatesAttributes& message = node.sample_candidates();
  RETURN_IF_ERROR(CheckNotNegative("k", message.k()));
  RETURN_IF_ERROR(CheckNotNegative("first_id", message.first_id()));
  return OpAttributes(SampleCandidatesAttributes{message.k(), message.first_id()});
}

void Put(const GetRowsAttributes& rows, proto::Node& node) {
  node.mutable_get_rows()->set_first_row(rows.first_row);
  node.mutable_get_rows()->set_partial_table(rows.partial_table);
}
Result TakeGetRows(const proto::Node& node) {
  RETURN_IF_ERROR(CheckNotNegative("first_row", node.get_rows().first_row()));
  return OpAttributes(
      GetRowsAttributes{node.get_rows().first_row(), node.get_rows().partial_table()});
}

// --- Attention, triangles ---

void Put(const RopeAttributes& rope, proto::Node& node) {
  proto::RopeAttributes& message = *node.mutable_rope();
  message.set_kind(static_cast<uint32_t>(rope.kind));
  message.set_dimensions(rope.dimensions);
  message.set_base(rope.base);
  message.set_frequency_scale(rope.frequency_scale);
  message.set_extrapolation(rope.extrapolation);
  message.set_attention_factor(rope.attention_factor);
  message.set_beta_fast(rope.beta_fast);
  message.set_beta_slow(rope.beta_slow);
  message.set_original_context(rope.original_context);
  message.mutable_sections()->Assign(rope.sections.begin(), rope.sections.end());
}
Result TakeRope(const proto::Node& node) {
  const proto::RopeAttributes& message = node.rope();
  RopeAttributes rope;
  ASSIGN_OR_RETURN(rope.kind, DecodeEnum("kind", message.kind(), RopeKind::kInterleaved));
  rope.dimensions = message.dimensions();
  rope.base = message.base();
  rope.frequency_scale = message.frequency_scale();
  rope.extrapolation = message.extrapolation();
  rope.attention_factor = message.attention_factor();
  rope.beta_fast = message.beta_fast();
  rope.beta_slow = message.beta_slow();
  rope.original_context = message.original_context();
  RETURN_IF_ERROR(DecodeInts("sections", message.sections(), rope.sections));
  RETURN_IF_ERROR(CheckNotNegative("dimensions", rope.dimensions));
  RETURN_IF_ERROR(CheckNotNegative("original_context", rope.original_context));
  for (const int32_t section : rope.sections) {
    RETURN_IF_ERROR(CheckNotNegative("sections", section));
  }
  return OpAttributes(rope);
}

void Put(const PagedAttentionAttributes& attention, proto::Node& node) {
  proto::PagedAttentionAttributes& message = *node.mutable_paged_attention();
  message.set_scale(attention.scale);
  message.set_softcap(attention.softcap);
  message.set_window_kind(static_cast<uint32_t>(attention.window_kind));
  message.set_window(attention.window);
  message.set_value_dimensions(attention.value_dimensions);
  message.set_has_sinks(attention.has_sinks);
  message.set_has_slopes(attention.has_slopes);
  message.set_heads_per_kv(attention.heads_per_kv);
  message.set_head_offset(attention.head_offset);
}
Result TakePagedAttention(const proto::Node& node) {
  const proto::PagedAttentionAttributes& message = node.paged_attention();
  PagedAttentionAttributes attention;
  attention.scale = message.scale();
  attention.softcap = message.softcap();
  ASSIGN_OR_RETURN(attention.window_kind,
                   DecodeEnum("window_kind", message.window_kind(), WindowKind::kChunked));
  attention.window = message.window();
  attention.value_dimensions = message.value_dimensions();
  attention.has_sinks = message.has_sinks();
  attention.has_slopes = message.has_slopes();
  attention.heads_per_kv = message.heads_per_kv();
  attention.head_offset = message.head_offset();
  RETURN_IF_ERROR(CheckNotNegative("heads_per_kv", attention.heads_per_kv));
  RETURN_IF_ERROR(CheckNotNegative("head_offset", attention.head_offset));
  RETURN_IF_ERROR(CheckNotNegative("window", attention.window));
  RETURN_IF_ERROR(CheckNotNegative("value_dimensions", attention.value_dimensions));
  return OpAttributes(attention);
}

void Put(const TriangleAttributes& triangle, proto::Node& node) {
  node.mutable_triangle()->set_lower(triangle.lower);
  node.mutable_triangle()->set_diagonal(triangle.diagonal);
}
Result TakeTriangle(const proto::Node& node) {
  return OpAttributes(TriangleAttributes{node.triangle().lower(), node.triangle().diagonal()});
}

// --- Between ranks ---

template <typename Message>
absl::StatusOr<CollectiveKey> TakeKey(const Message& message) {
  RETURN_IF_ERROR(CheckField("id", message.id(), 0, kMaxCollectives - 1));
  RETURN_IF_ERROR(CheckNotNegative("communicator", message.communicator()));
  return CollectiveKey{message.id(), message.communicator()};
}
template <typename Message>
void PutKey(const CollectiveKey& key, DType wire, Message& message) {
  message.set_id(key.id);
  message.set_communicator(key.communicator);
  message.set_wire(static_cast<uint32_t>(GetDTypeInfo(wire).gguf_id));
}

void Put(const AllReduceAttributes& reduce, proto::Node& node) {
  PutKey(reduce.key, reduce.wire, *node.mutable_all_reduce());
}
Result TakeAllReduce(const proto::Node& node) {
  AllReduceAttributes reduce;
  ASSIGN_OR_RETURN(reduce.key, TakeKey(node.all_reduce()));
  ASSIGN_OR_RETURN(reduce.wire, DecodeDType("wire", node.all_reduce().wire()));
  return OpAttributes(reduce);
}

void Put(const AllGatherAttributes& gather, proto::Node& node) {
  proto::AllGatherAttributes& message = *node.mutable_all_gather();
  PutKey(gather.key, gather.wire, message);
  message.set_type(static_cast<uint32_t>(GetDTypeInfo(gather.dtype).gguf_id));
  message.set_axis(gather.axis);
  EncodeExtents(gather.ne, *message.mutable_ne());
  message.mutable_counts()->Assign(gather.counts.begin(), gather.counts.end());
}
Result TakeAllGather(const proto::Node& node) {
  const proto::AllGatherAttributes& message = node.all_gather();
  AllGatherAttributes gather;
  ASSIGN_OR_RETURN(gather.key, TakeKey(message));
  ASSIGN_OR_RETURN(gather.wire, DecodeDType("wire", message.wire()));
  ASSIGN_OR_RETURN(gather.dtype, DecodeDType("type", message.type()));
  gather.axis = message.axis();
  RETURN_IF_ERROR(CheckField("axis", gather.axis, 0, 3));
  ASSIGN_OR_RETURN(gather.ne, DecodeExtents("ne", message.ne()));
  RETURN_IF_ERROR(CheckField("counts", message.counts_size(), 0, kMaxRanks));
  for (const int64_t count : message.counts()) {
    RETURN_IF_ERROR(CheckNotNegative("counts", count));
    gather.counts.push_back(count);
  }
  return OpAttributes(std::move(gather));
}

// --- The table ---

struct Row {
  proto::Node::AttributesCase field;
  Result (*take)(const proto::Node&);
};

// Row i is alternative i of OpAttributes.
using enum proto::Node::AttributesCase;
constexpr std::array<Row, std::variant_size_v<OpAttributes>> kRows = {{
    {ATTRIBUTES_NOT_SET, TakeNone},
    {kLeaf, TakeLeaf},
    {kView, TakeView},
    {kReshape, TakeReshape},
    {kPermute, TakePermute},
    {kCopy, TakeCopy},
    {kRepeat, TakeRepeat},
    {kAxis, TakeAxis},
    {kPad, TakePad},
    {kFill, TakeFill},
    {kScale, TakeScale},
    {kClamp, TakeClamp},
    {kUnary, TakeUnary},
    {kGlu, TakeGlu},
    {kNorm, TakeNorm},
    {kSoftMax, TakeSoftMax},
    {kTopK, TakeTopK},
    {kRope, TakeRope},
    {kPagedAttention, TakePagedAttention},
    {kTriangle, TakeTriangle},
    {kReceive, TakeReceive},
    {kSampleCandidates, TakeSampleCandidates},
    {kGetRows, TakeGetRows},
    {kAllReduce, TakeAllReduce},
    {kAllGather, TakeAllGather},
}};

constexpr bool RowsAreComplete() {
  for (const Row& row : kRows) {
    if (row.take == nullptr) return false;
  }
  return true;
}
static_assert(RowsAreComplete(), "every struct of OpAttributes has a row");

std::string FieldName(int field) {
  const auto* descriptor = proto::Node::descriptor()->FindFieldByNumber(field);
  return descriptor == nullptr ? "none" : descriptor->name();
}

}  // namespace

void EncodeAttributes(const OpAttributes& attributes, proto::Node& message) {
  std::visit([&](const auto& value) { Put(value, message); }, attributes);
}

absl::StatusOr<OpAttributes> DecodeAttributes(Op op, const proto::Node& message) {
  const Row& row = kRows[static_cast<size_t>(GetOpInfo(op).attributes)];
  if (message.attributes_case() != row.field) {
    return BadField("attributes", FieldName(message.attributes_case()),
                    absl::StrCat(AbslView(OpName(op)), " has ", FieldName(row.field)));
  }
  Result result = row.take(message);
  if (result.ok()) return result;
  return InPlace(FieldName(row.field), result.status());
}

}  // namespace weft
