// The self-test on a device whose memory the host cannot use, right and wrong.
#include "worker/self_test/test_device.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"
#include "worker/self_test/case_run.h"
#include "worker/self_test/test_cases.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

FakeDeviceOptions Fast() {
  FakeDeviceOptions options;
  options.delays = false;
  return options;
}

std::vector<std::string> TextsOf(Device& device) {
  const absl::StatusOr<Quarantine> quarantine = TestDevice(device);
  EXPECT_OK(quarantine);
  return quarantine.ok() ? quarantine->Texts() : std::vector<std::string>{"no result"};
}

bool Has(const Graph& graph, NodeId id, Op op, DType dtype) {
  const Node& node = graph.node(id);
  return node.op == op && graph.layout(node.sources[0]).dtype == dtype;
}

TEST(SelfTestCasesTest, EveryOpThatRunsOnDevices_HasACase) {
  std::set<std::string_view> tested;
  for (const self_test::TestCase& test_case : self_test::AllCases()) {
    ASSERT_OK(VerifyGraph(test_case.graph));
    tested.insert(OpName(test_case.graph.node(test_case.result).op));
  }
  for (const OpInfo& info : AllOps()) {
    EXPECT_EQ(tested.count(info.name), RunsOnDevice(info.op) ? 1u : 0u) << info.name;
  }
}

TEST(SelfTestCasesTest, EveryTypeWithACodec_IsTestedInProductsAndRows) {
  std::set<std::string> kinds;
  for (const self_test::TestCase& test_case : self_test::AllCases()) {
    kinds.insert(OpKindText(OpKindOf(test_case.graph, test_case.result)));
  }
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    for (const char* op : {"mul_mat ", "mul_mat_id ", "get_rows ", "copy ", "set_rows "}) {
      EXPECT_THAT(kinds, Contains(op + std::string(info.name)));
    }
  }
}

TEST(SelfTestTest, RightDevice_WithDelaysAndPadding_PassesEverything) {
  FakeDeviceOptions options;
  options.alignment = 256;
  options.padding_bytes = 96;
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), IsEmpty());
  EXPECT_EQ(device.used_bytes(), 0);
}

TEST(SelfTestTest, WrongRope_IsQuarantinedAndNothingElse) {
  FakeDeviceOptions options = Fast();
  options.corrupt_ops = {Op::kRope};
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(MatchesRegex("rope F32: error 2, limit 1e-05")));
}

TEST(SelfTestTest, WrongProductOfOneType_IsQuarantinedAndNothingElse) {
  FakeDeviceOptions options = Fast();
  options.corrupts = [](const Graph& graph, NodeId id) {
    return Has(graph, id, Op::kMulMat, DType::kQ4_0);
  };
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(StartsWith("mul_mat Q4_0: error 2")));
}

TEST(SelfTestTest, EachOpComputedWrong_IsQuarantined) {
  for (const OpInfo& info : AllOps()) {
    if (!RunsOnDevice(info.op)) continue;
    FakeDeviceOptions options = Fast();
    options.corrupt_ops = {info.op};
    options.refuses = [&](const Graph& graph, NodeId id) { return graph.node(id).op != info.op; };
    FakeDevice device(options);
    const std::vector<std::string> texts = TextsOf(device);
    EXPECT_THAT(texts, Not(IsEmpty())) << info.name;
    EXPECT_THAT(texts, Each(HasSubstr(std::string(info.name)))) << info.name;
  }
}

TEST(SelfTestTest, OneElementOfManyWrong_IsFound) {
  FakeDeviceOptions options = Fast();
  options.after_node = [](const Graph& graph, NodeId id, const TensorPlace& place) {
    if (!Has(graph, id, Op::kMulMat, DType::kQ6_K) || graph.layout(id).ne[1] == 1) return;
    const float zero = 0;
    ASSERT_OK(place.buffer->Set(place.offset + 1000, &zero, sizeof(zero)));
  };
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(StartsWith("mul_mat Q6_K: error ")));
}

TEST(SelfTestTest, NotANumber_IsQuarantined) {
  FakeDeviceOptions options = Fast();
  options.after_node = [](const Graph& graph, NodeId id, const TensorPlace& place) {
    if (graph.node(id).op != Op::kSoftMax) return;
    ASSERT_OK(place.buffer->Fill(place.offset, 0xFF, 4));
  };
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(StartsWith("soft_max F32: error inf"),
                                           StartsWith("fused soft_max F32: error inf")));
}

TEST(SelfTestTest, NothingWritten_IsQuarantined) {
  FakeDeviceOptions options = Fast();
  options.after_node = [](const Graph& graph, NodeId id, const TensorPlace& place) {
    if (graph.node(id).op != Op::kArgMax) return;
    ASSERT_OK(place.buffer->Fill(place.offset, 0xFF, 4));
  };
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(StartsWith("argmax F32: error ")));
}

TEST(SelfTestTest, ErrorOfTheDevice_IsQuarantinedAndTheRestTested) {
  FakeDeviceOptions options = Fast();
  options.before_node = [](const Graph& graph, NodeId id) {
    return graph.node(id).op == Op::kConcat ? absl::InternalError("no such kernel")
                                            : absl::OkStatus();
  };
  options.corrupt_ops = {Op::kGatedDeltaNet};  // the last case
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre("concat F32: it failed: fake0: no such kernel",
                                           StartsWith("gated_delta_net F32: error ")));
}

TEST(SelfTestTest, NoMemory_QuarantinesAllWithTheReason) {
  FakeDeviceOptions options = Fast();
  options.memory_bytes = 0;
  FakeDevice device(options);
  const std::vector<std::string> texts = TextsOf(device);
  EXPECT_GT(texts.size(), 50u);
  EXPECT_THAT(texts, Each(HasSubstr("cannot allocate")));
}

TEST(SelfTestTest, RefusedOps_AreNotTested) {
  FakeDeviceOptions options = Fast();
  options.refused_ops = {Op::kRope};
  options.corrupt_ops = {Op::kRope};
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), IsEmpty());
}

TEST(SelfTestTest, WrongOnlyOverItsSource_IsQuarantined) {
  FakeDeviceOptions options = Fast();
  const Graph* last = nullptr;  // a graph runs twice where its result may lie over its source
  options.after_node = [&last](const Graph& graph, NodeId id, const TensorPlace& place) {
    if (graph.node(id).op != Op::kSub) return;
    if (&graph == last) {
      ASSERT_OK(place.buffer->Fill(place.offset, 0, 4));
    }
    last = &graph;
  };
  FakeDevice device(options);
  EXPECT_THAT(TextsOf(device), ElementsAre(MatchesRegex("sub F32: error .*, over its source")));
}

TEST(SelfTestTest, HangingDevice_IsReportedWithTheOp) {
  // Never destroyed, as the contract says: a thread is left in it.
  struct Gate {
    Mutex mutex;
    CondVar opened;
  };
  static Gate* const gate = std::make_unique<Gate>().release();
  FakeDeviceOptions options = Fast();
  options.name = "gpu0";
  options.before_node = [](const Graph& graph, NodeId id) {
    MutexLock lock(gate->mutex);
    while (graph.node(id).op == Op::kAdd) gate->opened.Wait(gate->mutex);
    return absl::OkStatus();
  };
  static FakeDevice* const device = std::make_unique<FakeDevice>(options).release();
  SelfTestOptions short_time;
  short_time.deadline = std::chrono::milliseconds(200);
  EXPECT_THAT(TestDevice(*device, short_time),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "gpu0: its self-test did not end in 200 ms, it was at add F32"));
}

}  // namespace
}  // namespace weft
