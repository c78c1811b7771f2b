// Ranks that round differently choose the same experts, because the first chooses for all.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/editable_gguf.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/coordinator/engine/ranked_model.h"

namespace weft {
namespace {

// A model of experts whose routers find all equally good: the last bits decide.
std::string WriteUndecidedModel(const std::string& model, const TemporaryFolder& folder) {
  EditableGguf file = EditableGguf::Read(TestDataFolder() + "/models/" + model + "/model.gguf");
  int routers = 0;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    if (!absl::StrContains(file.tensors[i].name, "ffn_gate_inp")) continue;
    std::vector<uint8_t>& bytes = file.data[i];
    const size_t row = bytes.size() / static_cast<size_t>(file.tensors[i].layout.ne[1]);
    for (size_t at = row; at < bytes.size(); at += row) {
      std::copy_n(bytes.begin(), row, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ++routers;
  }
  EXPECT_GT(routers, 0);
  return file.Write(folder.File("model.gguf"));
}

// The last rank finds later experts a little better; whether it says so is `tells`.
RankCell UnlikeLast(int ranks, bool tells) {
  return {.ranks = ranks,
          .devices = RankDevices::kFakeDevices,
          .adjust = [ranks, tells](int rank, FakeDeviceOptions& device) {
            device.delays = false;
            if (rank != ranks - 1) return;
            if (tells) device.arithmetic = "another";
            device.rounds_otherwise = [](const Graph& graph, NodeId id) {
              return graph.node(id).op == Op::kSoftMax;
            };
          }};
}

class UnlikeRanksTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = WriteUndecidedModel(GetParam(), folder_);
    const std::vector<int32_t> golden =
        ReadGoldenModel(TestDataFolder() + "/models/" + GetParam()).cases.back().tokens;
    // A step that is computed in halves, and a short one.
    while (tokens_.size() < 70) tokens_.push_back(golden[tokens_.size() % golden.size()]);
    RankedModel whole;
    ASSERT_OK(whole.OpenFile(path_));
    ASSERT_OK(whole.StartWhole(RankedOptions(16)));
    ASSERT_OK_AND_ASSIGN(logits_, whole.Logits(tokens_));
    ASSERT_OK_AND_ASSIGN(next_, whole.Continue(tokens_, 4));
  }

  TemporaryFolder folder_;
  std::string path_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  std::vector<int32_t> next_;
};

TEST_P(UnlikeRanksTest, RanksThatTell_AnswerAsOne) {
  for (const int ranks : {2, 3}) {
    for (const OverlapPolicy overlap : {OverlapPolicy::kOff, OverlapPolicy::kOn}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, overlap ", static_cast<int>(overlap)));
      RunnerOptions options = RankedOptions(64);
      options.plan.overlap = overlap;
      RankedModel cut;
      ASSERT_OK(cut.OpenFile(path_));
      ASSERT_OK(cut.Start(options, UnlikeLast(ranks, true)));
      ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens_));
      EXPECT_LE(NormalizedError(got, logits_), 1e-6);
      ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> next, cut.Continue(tokens_, 4));
      EXPECT_EQ(next, next_);
    }
  }
}

// What the test above is about: parts of different experts are no expert.
TEST_P(UnlikeRanksTest, RanksThatSeemAlike_AddPartsOfDifferentExperts) {
  RankedModel cut;
  ASSERT_OK(cut.OpenFile(path_));
  ASSERT_OK(cut.Start(RankedOptions(64), UnlikeLast(2, false)));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens_));
  EXPECT_GT(NormalizedError(got, logits_), 1e-4);
}

TEST_P(UnlikeRanksTest, Explain_SaysWhoChooses) {
  RankedModel cut;
  ASSERT_OK(cut.OpenFile(path_));
  ASSERT_OK(cut.Start(RankedOptions(16), UnlikeLast(2, true)));
  ASSERT_OK_AND_ASSIGN(const ExplainReport report, cut.Explain(RankedOptions(16)));
  const int64_t layers = cut.model().hyperparameters().n_layer;
  for (const ExplainPhase& phase : report.phases) {
    EXPECT_EQ(phase.choices, layers);
    EXPECT_THAT(phase.rank_remarks,
                testing::Contains(testing::AllOf(
                    testing::HasSubstr("what top_k takes is chosen by rank 0 for all"),
                    testing::HasSubstr("w.gpu1 (gpu, another) rounds unlike w.gpu0"))));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, UnlikeRanksTest, testing::Values("llama-moe", "qwen3moe"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace weft
