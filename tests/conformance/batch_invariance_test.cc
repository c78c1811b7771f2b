// The bits of a token do not depend on its company: other tokens of the batch, their order, padding
// rows, or which sequences share a step (decisions 14 and 20).
#include <cctype>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/cpu/cpu_device.h"
#include "tests/conformance/op_cases.h"
#include "tests/conformance/op_conformance.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

class BatchInvarianceTest : public testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    CpuDeviceOptions options;
    options.threads = 3;
    options.instruction_set = GetParam();
    absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(options);
    if (!device.ok()) {
      ASSERT_THAT(device, StatusIs(absl::StatusCode::kFailedPrecondition, testing::_));
      GTEST_SKIP() << "not on this processor";
    }
    device_ = *std::move(device);
  }

  std::vector<uint8_t> Run(const OpCase& op_case) {
    absl::StatusOr<std::vector<uint8_t>> bytes = RunCase(*device_, op_case);
    EXPECT_OK(bytes) << op_case.name;
    return bytes.ok() ? *std::move(bytes) : std::vector<uint8_t>();
  }

  std::unique_ptr<CpuDevice> device_;
};

// Bytes [index * size, (index + 1) * size).
std::vector<uint8_t> Part(const std::vector<uint8_t>& bytes, size_t index, size_t size) {
  if (bytes.size() < (index + 1) * size) return {};
  const auto first = bytes.begin() + static_cast<int64_t>(index * size);
  return {first, first + static_cast<int64_t>(size)};
}

// The parts of these tokens, in this order.
std::vector<uint8_t> Take(const std::vector<uint8_t>& bytes, size_t bytes_per_token,
                          const std::vector<size_t>& tokens) {
  std::vector<uint8_t> taken;
  for (const size_t token : tokens) {
    const std::vector<uint8_t> part = Part(bytes, token, bytes_per_token);
    taken.insert(taken.end(), part.begin(), part.end());
  }
  return taken;
}

TEST_P(BatchInvarianceTest, MulMat_EveryType_AColumnAloneAndInCompany) {
  constexpr int64_t kDepth = 768, kRows = 75;
  const uint64_t seed = TestSeed(5);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    SCOPED_TRACE(std::string(info.name));
    const auto product = [&](int64_t columns) {
      CaseBuilder builder(seed);
      const NodeId weights = builder.Normal({kDepth, kRows, 1, 1}, info.dtype);
      const NodeId result =
          builder.builder().MulMat(weights, builder.Normal({kDepth, columns, 1, 1}));
      return std::move(builder).Finish("mul_mat", result, kExact);
    };
    const OpCase whole = product(45);
    const std::vector<uint8_t> together = Run(whole);
    for (const size_t column : {0, 7, 31, 44}) {
      OpCase alone = product(1);
      alone.leafs[1].second = Take(whole.leafs[1].second, kDepth * 4, {column});
      EXPECT_TRUE(Run(alone) == Part(together, column, kRows * 4)) << "column " << column;
    }
    OpCase few = product(5);
    const std::vector<size_t> order = {44, 2, 7, 7, 13};
    few.leafs[1].second = Take(whole.leafs[1].second, kDepth * 4, order);
    EXPECT_TRUE(Run(few) == Take(together, kRows * 4, order));
  }
}

TEST_P(BatchInvarianceTest, MulMatId_EveryType_ATokenAloneAndInCompany) {
  constexpr int64_t kDepth = 256, kRows = 75, kUsed = 2;
  const uint64_t seed = TestSeed(6);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    SCOPED_TRACE(std::string(info.name));
    const auto product = [&](int64_t tokens) {
      CaseBuilder builder(seed);
      const NodeId weights = builder.Normal({kDepth, kRows, 5, 1}, info.dtype);
      const NodeId columns = builder.Normal({kDepth, 1, tokens, 1});
      const NodeId ids = builder.Integers({kUsed, tokens, 1, 1}, -1, 4);
      const NodeId result = builder.builder().MulMatId(weights, columns, ids);
      return std::move(builder).Finish("mul_mat_id", result, kExact);
    };
    const OpCase whole = product(60);
    const std::vector<uint8_t> together = Run(whole);
    for (const size_t token : {0, 17, 59}) {
      OpCase alone = product(1);
      alone.leafs[1].second = Take(whole.leafs[1].second, kDepth * 4, {token});
      alone.leafs[2].second = Take(whole.leafs[2].second, kUsed * 4, {token});
      EXPECT_TRUE(Run(alone) == Part(together, token, kUsed * kRows * 4)) << "token " << token;
    }
  }
}

// Attention of some tokens of `whole`.
OpCase SomeTokens(const OpCase& whole, AttentionShape shape, const std::vector<size_t>& tokens,
                  uint64_t seed) {
  std::vector<int32_t> positions;
  positions.reserve(tokens.size());
  for (const size_t token : tokens) positions.push_back(shape.positions[token]);
  shape.positions = positions;
  OpCase some = AttentionCase("some tokens", shape, seed);
  // Leafs: q, keys, [values], table, sequence, positions.
  const size_t table = shape.prefix ? 2 : 3;
  const auto query_bytes = static_cast<size_t>(shape.head * shape.heads * 4);
  for (size_t i = 0; i < whole.leafs.size(); ++i) some.leafs[i].second = whole.leafs[i].second;
  some.leafs[0].second = Take(whole.leafs[0].second, query_bytes, tokens);
  some.leafs[table + 1].second = Take(whole.leafs[table + 1].second, 4, tokens);
  some.leafs[table + 2].second = Take(whole.leafs[table + 2].second, 4, tokens);
  return some;
}

TEST_P(BatchInvarianceTest, Attention_ATokenAloneAndInCompany) {
  const uint64_t seed = TestSeed(7);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    for (const WindowKind window : {WindowKind::kNone, WindowKind::kSliding}) {
      SCOPED_TRACE(absl::StrCat(AbslView(DTypeName(dtype)), " ", static_cast<int>(window)));
      AttentionShape shape;
      shape.head = shape.value_head = 32;
      shape.heads = 4;
      shape.kv_heads = 2;
      // Long and short, around the chunk edges, with padding between.
      shape.positions = {700, 3, -1, 255, 256, 511, 90, 512, -1, 0, 257, 640, 16, 15};
      shape.sequences = 2;
      shape.pages_per_sequence = 44;
      shape.keys = shape.values = dtype;
      shape.attributes.scale = 0.125f;
      shape.attributes.window_kind = window;
      shape.attributes.window = 300;
      const OpCase whole = AttentionCase("whole", shape, seed);
      const std::vector<uint8_t> together = Run(whole);
      const auto token_bytes = static_cast<size_t>(shape.value_head * shape.heads * 4);
      for (size_t token = 0; token < shape.positions.size(); ++token) {
        const std::vector<uint8_t> alone = Run(SomeTokens(whole, shape, {token}, seed));
        EXPECT_TRUE(alone == Part(together, token, token_bytes)) << "token " << token;
      }
      const std::vector<size_t> order = {13, 7, 0, 5, 1};
      EXPECT_TRUE(Run(SomeTokens(whole, shape, order, seed)) == Take(together, token_bytes, order));
    }
  }
}

// A store with padding rows in page 0, then attention over its pages: the other rows are the same
// bits as without padding, the padding rows are zero.
TEST_P(BatchInvarianceTest, StoreAndAttend_PaddingRows_ChangeNothingElse) {
  const uint64_t seed = TestSeed(8);
  constexpr size_t kTokens = 5, kPadded = 8, kRowBytes = 32 * 2 * 4;
  const auto step = [&](size_t tokens, const OpCase* whole) {
    CaseBuilder builder(seed);
    const auto count = static_cast<int64_t>(tokens);
    const NodeId rows = builder.Normal({32, 2, count, 1});
    const NodeId pages = builder.Normal({32, kPageTokens, 2, 3}, DType::kF16);
    std::vector<int32_t> slots = {32, 33, 34, 35, 36, 0, 0, 0};
    std::vector<int32_t> positions = {0, 1, 2, 3, 4, -1, -1, -1};
    slots.resize(tokens);
    positions.resize(tokens);
    GraphBuilder& graph = builder.builder();
    const NodeId stored = graph.KvStore(pages, rows, builder.Integers({count, 1, 1, 1}, slots));
    const NodeId result =
        graph.PagedAttention(rows, stored, stored, builder.Integers({1, 1, 1, 1}, {2}),
                             builder.Integers({count, 1, 1, 1}, std::vector<int32_t>(tokens, 0)),
                             builder.Integers({count, 1, 1, 1}, positions), kNoNode, kNoNode, {});
    OpCase op_case = std::move(builder).Finish("step", result, kExact);
    if (whole != nullptr) {
      op_case.leafs[0].second = Part(whole->leafs[0].second, 0, tokens * kRowBytes);
      op_case.leafs[1].second = whole->leafs[1].second;
    }
    return op_case;
  };
  const OpCase padded = step(kPadded, nullptr);
  const std::vector<uint8_t> with = Run(padded);
  const std::vector<uint8_t> without = Run(step(kTokens, &padded));
  EXPECT_TRUE(Part(with, 0, kTokens * kRowBytes) == without);
  const std::vector<uint8_t> zeros((kPadded - kTokens) * kRowBytes, 0);
  EXPECT_TRUE(std::vector<uint8_t>(with.begin() + kTokens * kRowBytes, with.end()) == zeros);
}

std::string IsaName(const testing::TestParamInfo<InstructionSet>& info) {
  std::string name(InstructionSetName(info.param));
  name[0] = static_cast<char>(std::toupper(name[0]));
  return name;
}

INSTANTIATE_TEST_SUITE_P(, BatchInvarianceTest,
                         testing::Values(InstructionSet::kScalar, InstructionSet::kAvx2,
                                         InstructionSet::kAvx512, InstructionSet::kNeon),
                         IsaName);

}  // namespace
}  // namespace weft
