#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

struct Net {
  int64_t key_heads;
  int64_t tokens;
  bool vector_decay;
  bool valid;  // sequences of different lengths
};

void AddDeltaNet(const Net& net, std::vector<TestCase>& cases) {
  constexpr int64_t kHead = 16;
  constexpr int64_t kValueHeads = 4;
  constexpr int64_t kSequences = 2;
  AddCase(cases, kRowSums, [&](CaseBuilder& builder) {
    const Extents keys = {kHead, net.key_heads, net.tokens, kSequences};
    const Extents values = {kHead, kValueHeads, net.tokens, kSequences};
    const int64_t decay = net.vector_decay ? kHead : 1;
    const NodeId q = builder.Between(keys, -0.5f, 0.5f);
    const NodeId k = builder.Between(keys, -0.5f, 0.5f);
    const NodeId v = builder.Values(values);
    const NodeId g = builder.Between({decay, kValueHeads, net.tokens, kSequences}, -1, 0);
    const NodeId beta = builder.Between({1, kValueHeads, net.tokens, kSequences}, 0, 1);
    const NodeId state = builder.Values({kHead, kHead, kValueHeads, kSequences});
    const NodeId valid =
        net.valid ? builder.Integers({2, 1, 1, 1}, {2, static_cast<int32_t>(net.tokens)}) : kNoNode;
    return builder.graph().Make(Op::kGatedDeltaNet, {}, {q, k, v, g, beta, state, valid});
  });
}

}  // namespace

void AddRecurrentCases(std::vector<TestCase>& cases) {
  AddCase(cases, kRowSums, [](CaseBuilder& builder) {
    const NodeId x = builder.Values({12, 33, 2, 1});
    const NodeId w = builder.Weights({4, 33, 1, 1});
    return builder.graph().Make(Op::kSsmConv, {}, {x, w});
  });
  AddDeltaNet({2, 7, false, true}, cases);
  AddDeltaNet({4, 3, true, false}, cases);
}

}  // namespace weft::self_test
