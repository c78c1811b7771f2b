#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

// The case for whole rows, and for rows that are windows into longer ones, as heads are in a fused
// projection.
template <typename Make>
void AddRows(std::vector<TestCase>& cases, double limit, Make make) {
  AddCase(cases, limit, [&](CaseBuilder& builder) {
    const NodeId x = builder.Values({300, 4, 1, 1});
    return make(builder, x);
  });
  AddCase(cases, limit, [&](CaseBuilder& builder) {
    const NodeId x = builder.Values({40, 6, 1, 1});
    return make(builder, builder.graph().View(x, {24, 3, 2, 1}, {4, 160, 480, 960}, 32));
  });
}

void AddNorms(std::vector<TestCase>& cases) {
  for (const Op op : {Op::kNorm, Op::kRmsNorm}) {
    for (const bool weighted : {false, true}) {
      AddRows(cases, kRowSums, [&](CaseBuilder& builder, NodeId x) {
        const int64_t n = builder.graph().layout(x).ne[0];
        const NodeId weight = weighted ? builder.Weights({n, 1, 1, 1}) : kNoNode;
        return builder.graph().Make(op, NormAttributes{1e-5f}, {x, weight});
      });
    }
  }
  AddRows(cases, kRowSums, [](CaseBuilder& builder, NodeId x) {
    return builder.graph().Make(Op::kL2Norm, NormAttributes{1e-6f}, {x});
  });
}

void AddTopK(std::vector<TestCase>& cases) {
  for (const bool padded : {false, true}) {
    AddCase(cases, kExact, [&](CaseBuilder& builder) {
      const NodeId x = builder.Values({60, 3, 1, 1});
      const NodeId positions = padded ? builder.Integers({3, 1, 1, 1}, {7, -1, 0}) : kNoNode;
      return builder.graph().TopK(x, 8, positions);
    });
  }
}

void AddSampleCandidates(std::vector<TestCase>& cases) {
  for (const bool change : {false, true}) {
    AddCase(cases, kRowSums, [&](CaseBuilder& builder) {
      const NodeId x = builder.Values({600, 2, 1, 1});
      const NodeId changed =
          change ? builder.Integers({3, 2, 1, 1}, {17, -1, 599, 1000, 0, 0}) : kNoNode;
      return builder.graph().SampleCandidates(x, changed, 8);
    });
  }
}

}  // namespace

void AddRowCases(std::vector<TestCase>& cases) {
  AddNorms(cases);
  for (const float scale : {1.0f, 1.5f}) {
    AddRows(cases, kRowSums,
            [&](CaseBuilder& builder, NodeId x) { return builder.graph().SoftMax(x, scale); });
  }
  for (const Op op : {Op::kSumRows, Op::kMean, Op::kCumSum, Op::kArgMax}) {
    AddRows(cases, op == Op::kArgMax ? kExact : kRowSums,
            [&](CaseBuilder& builder, NodeId x) { return builder.graph().Make(op, {}, {x}); });
  }
  AddTopK(cases);
  AddSampleCandidates(cases);
}

}  // namespace weft::self_test
