#include "absl/strings/str_cat.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

struct Net {
  int64_t h;
  int64_t key_heads;
  int64_t value_heads;
  int64_t tokens;
  int64_t sequences;
  bool vector_decay;
  bool valid;
};

OpCase DeltaNet(const Net& net, uint64_t seed) {
  CaseBuilder builder(seed);
  const auto normal = [&](const Extents& ne, float factor) {
    return builder.builder().Scale(builder.Normal(ne), factor);
  };
  const Extents keys = {net.h, net.key_heads, net.tokens, net.sequences};
  const Extents values = {net.h, net.value_heads, net.tokens, net.sequences};
  const NodeId q = normal(keys, 0.3f);
  const NodeId k = normal(keys, 0.3f);
  const NodeId v = normal(values, 1);
  const int64_t decay = net.vector_decay ? net.h : 1;
  const NodeId g = builder.Uniform({decay, net.value_heads, net.tokens, net.sequences}, -1, 0);
  const NodeId beta = builder.Uniform({1, net.value_heads, net.tokens, net.sequences}, 0, 1);
  const NodeId state = normal({net.h, net.h, net.value_heads, net.sequences}, 1);
  const NodeId valid =
      net.valid ? builder.Integers({net.sequences, 1, 1, 1}, 0, net.tokens) : kNoNode;
  const NodeId result =
      builder.builder().Make(Op::kGatedDeltaNet, {}, {q, k, v, g, beta, state, valid});
  return std::move(builder).Finish(
      absl::StrCat("gated_delta_net ", net.h, " ", net.key_heads, ":", net.value_heads, " ",
                   net.tokens, "x", net.sequences, " valid ", net.valid),
      result, kRowSums);
}

}  // namespace

std::vector<OpCase> RecurrentCases(uint64_t seed) {
  std::vector<OpCase> cases;
  for (const Extents& ne : {Extents{4, 1, 1, 1}, Extents{12, 33, 3, 1}, Extents{3, 8, 2, 1}}) {
    CaseBuilder builder(++seed);
    const int64_t width = ne[0] < 4 ? ne[0] : 4;
    const NodeId x = builder.Normal(ne);
    const NodeId w = builder.Normal({width, ne[1], 1, 1});
    const NodeId result = builder.builder().Make(Op::kSsmConv, {}, {x, w});
    cases.push_back(
        std::move(builder).Finish(absl::StrCat("ssm_conv", ExtentsText(ne)), result, kRowSums));
  }
  cases.push_back(DeltaNet({1, 1, 1, 1, 1, false, false}, ++seed));
  cases.push_back(DeltaNet({16, 2, 4, 9, 2, false, true}, ++seed));
  cases.push_back(DeltaNet({8, 2, 2, 70, 3, true, true}, ++seed));
  return cases;
}

std::vector<OpCase> AllOpCases(uint64_t seed) {
  std::vector<OpCase> all;
  for (auto* make : {ElementwiseCases, RowCases, MoveCases, ProductCases, AttentionCases,
                     RecurrentCases, CandidateCases}) {
    for (OpCase& op_case : make(seed += 100000)) all.push_back(std::move(op_case));
  }
  return all;
}

}  // namespace weft
