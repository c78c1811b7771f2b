// The parameters of each op, one small struct per kind. Plain values: comparable, printable, no
// pointers.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "common/tensor/tensor_layout.h"

namespace weft {

// Ops without parameters.
struct NoAttributes {
  friend bool operator==(const NoAttributes&, const NoAttributes&) = default;
};

// Where a leaf gets its memory from.
enum class LeafKind : uint8_t {
  kInput,      // filled by the host before each step; id = position in the program's input list
  kWeight,     // id = position in the model's weight table
  kCache,      // KV pages or recurrent state, changed by steps; id = position in the model's cache
               // table
  kPageTable,  // page ids of each sequence slot, kept by the session; id = position in its list of
               // tables
};

struct LeafAttributes {
  LeafKind kind = LeafKind::kInput;
  int32_t id = 0;
  friend bool operator==(const LeafAttributes&, const LeafAttributes&) = default;
};

// A window into the source: `offset` bytes from its first byte, with these extents and byte
// strides.
struct ViewAttributes {
  Extents ne = {1, 1, 1, 1};
  Extents nb = {4, 4, 4, 4};
  int64_t offset = 0;
  friend bool operator==(const ViewAttributes&, const ViewAttributes&) = default;
};

// Same elements, same order, other extents. The source is contiguous.
struct ReshapeAttributes {
  Extents ne = {1, 1, 1, 1};
  friend bool operator==(const ReshapeAttributes&, const ReshapeAttributes&) = default;
};

// Dimension i of the source becomes dimension axes[i] of the result.
struct PermuteAttributes {
  std::array<int32_t, 4> axes = {0, 1, 2, 3};
  friend bool operator==(const PermuteAttributes&, const PermuteAttributes&) = default;
};

// Copy into a packed tensor of this type.
struct CopyAttributes {
  DType dtype = DType::kF32;
  friend bool operator==(const CopyAttributes&, const CopyAttributes&) = default;
};

// Repeat the source to these extents.
struct RepeatAttributes {
  Extents ne = {1, 1, 1, 1};
  friend bool operator==(const RepeatAttributes&, const RepeatAttributes&) = default;
};

// Concatenate, pad, or reduce along this dimension.
struct AxisAttributes {
  int32_t axis = 0;
  friend bool operator==(const AxisAttributes&, const AxisAttributes&) = default;
};

// Zeros after the end of each dimension.
struct PadAttributes {
  Extents after = {0, 0, 0, 0};
  friend bool operator==(const PadAttributes&, const PadAttributes&) = default;
};

// A packed F32 tensor of one value.
struct FillAttributes {
  Extents ne = {1, 1, 1, 1};
  float value = 0;
  friend bool operator==(const FillAttributes&, const FillAttributes&) = default;
};

// y = x * factor + bias.
struct ScaleAttributes {
  float factor = 1;
  float bias = 0;
  friend bool operator==(const ScaleAttributes&, const ScaleAttributes&) = default;
};

struct ClampAttributes {
  float low = 0;
  float high = 0;
  friend bool operator==(const ClampAttributes&, const ClampAttributes&) = default;
};

// Same order as cpu::UnaryFunction in common/cpu/kernels/kernel_table.h.
enum class UnaryKind : uint8_t {
  kSilu,
  kGelu,
  kGeluErf,
  kGeluQuick,
  kSigmoid,
  kTanh,
  kExp,
  kNeg,
  kRelu,
  kSoftplus,
  kSqr,
  kSqrt,
  kLog,
  kSin,
  kCos,
};
inline constexpr int kUnaryKindCount = 15;

struct UnaryAttributes {
  UnaryKind kind = UnaryKind::kSilu;
  friend bool operator==(const UnaryAttributes&, const UnaryAttributes&) = default;
};

enum class GluKind : uint8_t { kSwiglu, kGeglu, kReglu, kSwigluOai };

// Gated unit of (gate, up), or of one source whose rows are [gate | up] ([up | gate] if swapped).
struct GluAttributes {
  GluKind kind = GluKind::kSwiglu;
  bool swapped = false;
  float alpha = 1.702f;  // kSwigluOai only
  float limit = 7.0f;    // kSwigluOai only
  friend bool operator==(const GluAttributes&, const GluAttributes&) = default;
};

// Added to the mean square (norm, rms_norm) or the floor of the length (l2_norm).
struct NormAttributes {
  float epsilon = 1e-5f;
  friend bool operator==(const NormAttributes&, const NormAttributes&) = default;
};

struct SoftMaxAttributes {
  float scale = 1;
  friend bool operator==(const SoftMaxAttributes&, const SoftMaxAttributes&) = default;
};

struct TopKAttributes {
  int32_t k = 1;
  friend bool operator==(const TopKAttributes&, const TopKAttributes&) = default;
};

// The vocabulary may be cut: this row holds ids first_id, first_id + 1 and so on.
struct SampleCandidatesAttributes {
  int32_t k = 1;
  int32_t first_id = 0;
  friend bool operator==(const SampleCandidatesAttributes&,
                         const SampleCandidatesAttributes&) = default;
};

enum class RopeKind : uint8_t {
  kAdjacent,     // pair i is elements (2i, 2i + 1)
  kHalf,         // pair i is elements (i, i + dimensions / 2)
  kSections,     // as kHalf, position chosen by consecutive sections (M-RoPE)
  kInterleaved,  // as kHalf, position chosen by interleaved sections (IM-RoPE)
};

// Spec G.1.
struct RopeAttributes {
  RopeKind kind = RopeKind::kAdjacent;
  int32_t dimensions = 0;  // rotated elements of a row, even; the rest is copied
  float base = 10000;
  float frequency_scale = 1;
  float extrapolation = 0;  // YaRN mix; 0 turns it off
  float attention_factor = 1;
  float beta_fast = 32;
  float beta_slow = 1;
  int64_t original_context = 0;
  std::array<int32_t, 4> sections = {0, 0, 0, 0};
  friend bool operator==(const RopeAttributes&, const RopeAttributes&) = default;
};

enum class WindowKind : uint8_t {
  kNone,
  kSliding,  // the last `window` positions, the token's own included
  kChunked,  // positions of the token's own chunk of `window` positions
};

// Spec G.0 (attention) and decision 12. Scores are scale * q.k, then capped, then the ALiBi slope
// is added.
struct PagedAttentionAttributes {
  float scale = 1;
  float softcap = 0;  // 0: none
  WindowKind window_kind = WindowKind::kNone;
  int64_t window = 0;
  int64_t value_dimensions =
      0;  // 0: rows of the V pages; else V is the first so many elements of each K row (MLA)
  bool has_sinks = false;   // a source with one logit per head
  bool has_slopes = false;  // a source with one ALiBi slope per head
  // Of a rank that holds part of the heads (attention_heads.h): query heads per KV head, and the
  // first one's place among those of the first KV head. 0: as the sources' extents say.
  int32_t heads_per_kv = 0;
  int32_t head_offset = 0;
  friend bool operator==(const PagedAttentionAttributes&,
                         const PagedAttentionAttributes&) = default;
};

// The table may be a part of a larger one: it holds its rows first_row, first_row + 1 and so on,
// and ids of other rows give zeros.
struct GetRowsAttributes {
  int64_t first_row = 0;
  bool partial_table = false;
  friend bool operator==(const GetRowsAttributes&, const GetRowsAttributes&) = default;
};

struct TriangleAttributes {
  bool lower = true;
  bool diagonal = true;  // keep (tri) or take as stored instead of as ones (solve_tri)
  friend bool operator==(const TriangleAttributes&, const TriangleAttributes&) = default;
};

// A packed tensor of this type and these extents.
struct ReceiveAttributes {
  DType dtype = DType::kF32;
  Extents ne = {1, 1, 1, 1};
  friend bool operator==(const ReceiveAttributes&, const ReceiveAttributes&) = default;
};

// What a collective is among those of its step. All ranks perform those of a communicator in the
// same order.
struct CollectiveKey {
  int32_t id = 0;            // unique within the programs of a step; the same on all its ranks
  int32_t communicator = 0;  // position in the plan's list; the device says which of its ranks
  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
};

// The sum of the source, packed F32, over all ranks; the same bits on each of them.
struct AllReduceAttributes {
  CollectiveKey key;
  DType wire = DType::kF32;  // as what values travel: F32, BF16 or Q8_0
  friend bool operator==(const AllReduceAttributes&, const AllReduceAttributes&) = default;
};

// The packed tensor of type `dtype` (F32 or I32) and extents `ne` whose part [sum of the counts of
// lower ranks, + counts[rank]) along `axis` is the source of that rank. A rank whose count is 0 may
// do without a source; with one rank that has them all this is a broadcast.
struct AllGatherAttributes {
  CollectiveKey key;
  DType wire = DType::kF32;  // as for all_reduce; of I32 tensors I32
  DType dtype = DType::kF32;
  int32_t axis = 0;
  Extents ne = {1, 1, 1, 1};
  std::vector<int64_t> counts;  // by rank, at most kMaxRanks
  friend bool operator==(const AllGatherAttributes&, const AllGatherAttributes&) = default;
};

// Most ranks of a communicator.
inline constexpr int32_t kMaxRanks = 256;
// Ids of collectives lie below it.
inline constexpr int32_t kMaxCollectives = 8192;

using OpAttributes =
    std::variant<NoAttributes, LeafAttributes, ViewAttributes, ReshapeAttributes, PermuteAttributes,
                 CopyAttributes, RepeatAttributes, AxisAttributes, PadAttributes, FillAttributes,
                 ScaleAttributes, ClampAttributes, UnaryAttributes, GluAttributes, NormAttributes,
                 SoftMaxAttributes, TopKAttributes, RopeAttributes, PagedAttentionAttributes,
                 TriangleAttributes, ReceiveAttributes, SampleCandidatesAttributes,
                 GetRowsAttributes, AllReduceAttributes, AllGatherAttributes>;

}  // namespace weft
