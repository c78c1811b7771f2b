// Every operation of the graph IR: one enumerator, one row of one table. Builders, verifiers, wire
// decoding, `supports` answers, split rules, `explain` and the tests all read this table.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/op_attributes.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

enum class Op : uint8_t {
  kLeaf,
  // Views: share the memory of their source, never execute.
  kView,
  kReshape,
  kPermute,
  kTranspose,
  // Data movement.
  kCopy,
  kConcat,
  kRepeat,
  kPad,
  kFill,
  kDiag,
  kTri,
  kGetRows,
  kSetRows,
  // Element by element.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kAddId,
  kScale,
  kClamp,
  kUnary,
  kGlu,
  // Along rows.
  kNorm,
  kRmsNorm,
  kL2Norm,
  kSoftMax,
  kSumRows,
  kMean,
  kCumSum,
  kArgMax,
  kTopK,
  kSampleCandidates,
  // Products.
  kMulMat,
  kMulMatId,
  kSolveTri,
  // Attention and recurrence.
  kRope,
  kKvStore,
  kPagedAttention,
  kSsmConv,
  kGatedDeltaNet,
  // Between processes.
  kReceive,  // a tensor that another process sends; no device computes it, commands perform it
  // Between ranks: one node in the graph of each rank, performed together by commands.
  kAllReduce,  // the sum of all ranks' tensors
  kAllGather,  // all ranks' parts behind each other along an axis
};
inline constexpr int kOpCount = 44;

constexpr bool IsCollective(Op op) { return op == Op::kAllReduce || op == Op::kAllGather; }

// False for leafs and views, which never execute, and for what a command performs instead of a
// device's kernels: devices answer UNIMPLEMENTED.
constexpr bool RunsOnDevice(Op op) {
  return op > Op::kTranspose && op != Op::kReceive && !IsCollective(op);
}

inline constexpr int kMaxSources = 8;

// What an operation costs, for planners and reports.
struct OpCost {
  int64_t flops = 0;  // multiply and add count as two
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

// The layout of the result, or why these sources and attributes are not legal.
using InferLayout = absl::StatusOr<TensorLayout> (*)(const OpAttributes& attributes,
                                                     absl::Span<const TensorLayout> sources);
using EstimateCost = OpCost (*)(const OpAttributes& attributes,
                                absl::Span<const TensorLayout> sources, const TensorLayout& result);

struct OpInfo {
  Op op;
  std::string_view name;
  int8_t min_sources;
  int8_t max_sources;
  int8_t attributes;  // index of the attribute struct in OpAttributes
  bool is_view;       // shares its first source's memory and never executes
  bool in_place;  // a kernel may write the result over the first source of equal layout (spec C.4)
  bool writes_source;  // changes its first source's memory and returns it (kv_store, set_rows)
  InferLayout infer;
  EstimateCost cost;
};

const OpInfo& GetOpInfo(Op op);
absl::Span<const OpInfo> AllOps();
inline std::string_view OpName(Op op) { return GetOpInfo(op).name; }

// Checks arity and attribute type, then infers the result. Errors: INVALID_ARGUMENT naming the op
// and what is wrong.
absl::StatusOr<TensorLayout> InferResult(Op op, const OpAttributes& attributes,
                                         absl::Span<const TensorLayout> sources);

std::string_view UnaryName(UnaryKind kind);
std::string_view GluName(GluKind kind);

// Tokens of a KV page (decision 12).
inline constexpr int64_t kPageTokens = 16;

}  // namespace weft
