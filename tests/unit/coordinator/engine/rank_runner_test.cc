// Models cut over ranks, each a process with a device of its own: the undivided run's answer, by
// decision 20, for every model, number of ranks and way to share that a test can afford.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "common/program/loopback_edges.h"
#include "common/tensor/quant/reference_codec.h"
#include "coordinator/engine/generator.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/engine/rank_groups.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

enum class Machines { kOneProcess, kProcesses, kFakeDevices };

// A golden model over `ranks` machines "w0", "w1", ... in groups, and a coordinator without layers.
class RankedModel {
 private:
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
  std::vector<std::string> hosts_;
  std::vector<std::unique_ptr<MetaDevice>> groups_;
  SystemClock clock_;

 public:
  absl::Status Open(const std::string& name) {
    golden = ReadGoldenModel(TestDataFolder() + "/models/" + name);
    ASSIGN_OR_RETURN(file_, GgufFile::Open(golden.model_path));
    ASSIGN_OR_RETURN(model_, Model::Create(*file_));
    return absl::OkStatus();
  }

  // One device that is not divided.
  absl::Status StartWhole(const RunnerOptions& options) {
    RETURN_IF_ERROR(AddCpu("local"));
    RETURN_IF_ERROR(AddProcess({devices_[0]}, -1));
    ASSIGN_OR_RETURN(
        runner, ModelRunner::Create(*model_, *devices_[0], *processes_.back(), clock_, options));
    return absl::OkStatus();
  }

  absl::Status Start(const RunnerOptions& options, int ranks, const std::vector<double>& shares,
                     Machines machines, int64_t tensor_ranks = 0) {
    for (int r = 0; r < ranks; ++r) {
      const std::string host =
          machines == Machines::kProcesses ? absl::StrCat("w", r) : std::string("w");
      if (machines == Machines::kProcesses) {
        RETURN_IF_ERROR(AddCpu(host));
      } else {
        FakeDeviceOptions fake;
        fake.host = host;
        fake.name = absl::StrCat(host, ".gpu", r);
        fake.delays = machines == Machines::kFakeDevices;
        fake.seed = static_cast<uint64_t>(r) + 1;
        owned_.push_back(std::make_unique<FakeDevice>(std::move(fake)));
        devices_.push_back(owned_.back().get());
      }
    }
    RETURN_IF_ERROR(AddCpu("local"));
    PlacementOptions placement;
    placement.split_mode = SplitMode::kTensor;
    placement.tensor_split = shares;
    placement.tensor_ranks = tensor_ranks;
    PlacedDevices placed;
    placed.devices = devices_;
    ASSIGN_OR_RETURN(groups_, GroupDevices(placed, placement));
    ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model_, placed.devices, placement));
    if (machines != Machines::kProcesses) {
      RETURN_IF_ERROR(AddProcess(devices_, -1));
      ASSIGN_OR_RETURN(runner,
                       ModelRunner::Create(*model_, placed, *processes_.back(), clock_, options));
      return absl::OkStatus();
    }
    const LoopbackOptions loopback{.processes = static_cast<int32_t>(devices_.size())};
    edges_ = std::make_unique<LoopbackEdges>(loopback);
    collectives_ = std::make_unique<LoopbackEdges>(loopback);
    std::vector<GroupMember> members;
    for (size_t p = 0; p < devices_.size(); ++p) {
      RETURN_IF_ERROR(AddProcess({devices_[p]}, static_cast<int32_t>(p)));
      members.push_back({devices_[p]->host(), processes_.back().get()});
    }
    group_ = std::make_unique<ProcessGroup>(std::move(members));
    ASSIGN_OR_RETURN(runner, ModelRunner::Create(*model_, placed, *group_, clock_, options));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<float>> Logits(absl::Span<const int32_t> tokens) {
    runner->Truncate(0, 0);
    return Prefill(*runner, tokens, 0, true);
  }

  // [tokens, n_embd], by steps of up to `most` tokens.
  absl::StatusOr<std::vector<float>> Hidden(absl::Span<const int32_t> tokens, int64_t most) {
    runner->Truncate(0, 0);
    std::vector<float> all;
    for (size_t begin = 0; begin < tokens.size(); begin += static_cast<size_t>(most)) {
      std::vector<BatchToken> batch;
      for (const int32_t token : tokens.subspan(begin, static_cast<size_t>(most))) {
        batch.push_back({token, static_cast<int64_t>(begin + batch.size()), 0, true});
      }
      RETURN_IF_ERROR(runner->LaunchForHidden(batch));
      ASSIGN_OR_RETURN(const std::vector<float> rows, runner->Collect());
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  absl::StatusOr<std::vector<int32_t>> Continue(absl::Span<const int32_t> tokens, int64_t count) {
    runner->Truncate(0, 0);
    GenerateCallbacks callbacks;
    callbacks.choose = [](absl::Span<const float> row) -> absl::StatusOr<int32_t> {
      return ArgMax(row);
    };
    ASSIGN_OR_RETURN(const GenerateResult result,
                     Generate(*runner, clock_, tokens, count, callbacks));
    return result.tokens;
  }

  absl::StatusOr<ExplainReport> Explain(const RunnerOptions& options) const {
    ExplainOptions explain;
    explain.placement.split_mode = SplitMode::kTensor;
    explain.plan = options.plan;
    explain.batch = options.ubatch;
    explain.context = options.context;
    explain.key_type = options.key_type;
    explain.value_type = options.value_type;
    return MakeExplainReport(*model_, devices_, explain);
  }

  // In collectives, by rank; where each is a process.
  std::vector<EdgeTraffic> Sent(int32_t ranks) {
    std::vector<EdgeTraffic> sent(static_cast<size_t>(ranks));
    for (int32_t from = 0; from < ranks; ++from) {
      for (int32_t to = 0; to < ranks; ++to) {
        if (to == from) continue;
        sent[from].messages += collectives_->traffic(from, to).messages;
        sent[from].bytes += collectives_->traffic(from, to).bytes;
      }
    }
    return sent;
  }

  const Model& model() const { return *model_; }

  GoldenModel golden;
  std::unique_ptr<ModelRunner> runner;

 private:
  absl::Status AddCpu(const std::string& host) {
    CpuDeviceOptions options;
    options.host = host;
    options.name = absl::StrCat(host, ".cpu0");
    options.instruction_set = BestInstructionSet();
    ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> cpu, CpuDevice::Create(options));
    devices_.push_back(cpu.get());
    owned_.push_back(std::move(cpu));
    hosts_.push_back(host);
    return absl::OkStatus();
  }

  // `number` is the process's among those that send each other messages; -1: it is alone.
  absl::Status AddProcess(std::vector<Device*> devices, int32_t number) {
    LocalProgramHostOptions options;
    options.devices = std::move(devices);
    options.edges = number < 0 ? nullptr : &edges_->port(number);
    options.collectives = number < 0 ? nullptr : &collectives_->port(number);
    ASSIGN_OR_RETURN(processes_.emplace_back(), LocalProgramHost::Create(std::move(options)));
    return absl::OkStatus();
  }

  std::unique_ptr<LoopbackEdges> edges_;
  std::unique_ptr<LoopbackEdges> collectives_;
  std::vector<std::unique_ptr<LocalProgramHost>> processes_;
  std::unique_ptr<ProcessGroup> group_;
};

RunnerOptions Options(int64_t ubatch) {
  RunnerOptions options;
  options.context = 128;
  options.ubatch = ubatch;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  options.reserve_outputs = ubatch;
  return options;
}

// Sums over ranks round differently; products of quantised weights do not, but for their order.
double Tolerance(const GoldenModel& golden) { return std::max(1e-6, golden.tol_nmse / 10); }

struct Cell {
  int ranks = 2;
  std::vector<double> shares = {};
  Machines machines = Machines::kProcesses;
  int64_t tensor_ranks = 0;
};

std::string CellText(const Cell& cell) {
  return absl::StrCat(cell.ranks, " ranks, shares ", absl::StrJoin(cell.shares, ","), ", machines ",
                      static_cast<int>(cell.machines), ", groups of ", cell.tensor_ranks);
}

void CheckCell(const std::string& name, const Cell& cell) {
  SCOPED_TRACE(name + ": " + CellText(cell));
  RankedModel whole;
  ASSERT_OK(whole.Open(name));
  ASSERT_OK(whole.StartWhole(Options(16)));
  RankedModel cut;
  ASSERT_OK(cut.Open(name));
  ASSERT_OK(cut.Start(Options(16), cell.ranks, cell.shares, cell.machines, cell.tensor_ranks));
  const GoldenCase& golden = whole.golden.cases.back();
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(golden.tokens));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(golden.tokens));
  EXPECT_LE(NormalizedError(got, want), Tolerance(whole.golden));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want_states, whole.Hidden(golden.tokens, 16));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> states, cut.Hidden(golden.tokens, 7));
  EXPECT_EQ(states.size(), golden.tokens.size() * whole.model().hyperparameters().n_embd);
  EXPECT_LE(NormalizedError(states, want_states), Tolerance(whole.golden));
  const absl::Span<const int32_t> prompt =
      absl::MakeConstSpan(golden.tokens).first(std::min<size_t>(golden.tokens.size(), 20));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> expected, whole.Continue(prompt, 8));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> tokens, cut.Continue(prompt, 8));
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(cut.runner->counters().replans, 0);
}

class RankRunnerTest : public testing::TestWithParam<const char*> {};

TEST_P(RankRunnerTest, RanksInProcesses_AnswerAsOne) {
  for (const int ranks : {2, 3, 5}) CheckCell(GetParam(), {.ranks = ranks});
  CheckCell(GetParam(), {.ranks = 3, .shares = {3, 1, 1}});
  CheckCell(GetParam(), {.ranks = 4, .tensor_ranks = 2});
}

TEST_P(RankRunnerTest, RanksWithMemoriesApart_AnswerAsOne) {
  CheckCell(GetParam(), {.ranks = 2, .machines = Machines::kFakeDevices});
  CheckCell(GetParam(), {.ranks = 3, .shares = {1, 0, 2}, .machines = Machines::kFakeDevices});
}

TEST_P(RankRunnerTest, MoreRanksThanHeads_AnswerAsOne) { CheckCell(GetParam(), {.ranks = 16}); }

// Large steps in halves, whose sums travel while the ranks compute; the last one is half padding.
TEST_P(RankRunnerTest, Overlap_AnswersAsOne) {
  RankedModel whole;
  ASSERT_OK(whole.Open(GetParam()));
  ASSERT_OK(whole.StartWhole(Options(64)));
  const std::vector<int32_t>& golden = whole.golden.cases.back().tokens;
  std::vector<int32_t> tokens;
  while (tokens.size() < 100) tokens.push_back(golden[tokens.size() % golden.size()]);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(tokens));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> expected, whole.Continue(tokens, 4));
  for (const Cell& cell :
       {Cell{.ranks = 2}, Cell{.ranks = 3, .shares = {3, 1, 1}},
        Cell{.ranks = 4, .tensor_ranks = 2}, Cell{.ranks = 2, .machines = Machines::kFakeDevices},
        Cell{.ranks = 4, .machines = Machines::kFakeDevices, .tensor_ranks = 2}}) {
    SCOPED_TRACE(CellText(cell));
    RunnerOptions options = Options(64);
    options.plan.overlap = OverlapPolicy::kOn;
    RankedModel cut;
    ASSERT_OK(cut.Open(GetParam()));
    ASSERT_OK(cut.Start(options, cell.ranks, cell.shares, cell.machines, cell.tensor_ranks));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens));
    EXPECT_LE(NormalizedError(got, want), Tolerance(whole.golden));
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> next, cut.Continue(tokens, 4));
    EXPECT_EQ(next, expected);
    EXPECT_EQ(cut.runner->counters().replans, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RankRunnerTest,
                         testing::Values("llama-gqa", "llama-moe", "llama-plain", "llama3-rope",
                                         "qwen2", "qwen3", "qwen3moe", "llama-f16"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Narrower sums move the answer a little: less than their type allows, but not by nothing.
TEST(RankRunner, WireTypes_AnswerNearly) {
  RankedModel whole;
  ASSERT_OK(whole.Open("llama-gqa"));
  ASSERT_OK(whole.StartWhole(Options(16)));
  const std::vector<int32_t>& tokens = whole.golden.cases.back().tokens;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(tokens));
  const struct {
    DType wire;
    double least, most;
  } cases[] = {{DType::kBF16, 1e-8, 1e-4}, {DType::kQ8_0, 1e-7, 1e-3}};
  for (const auto& c : cases) {
    for (const int ranks : {2, 3, 5}) {
      for (const AllReducePolicy policy : {AllReducePolicy::kDoubling, AllReducePolicy::kByParts}) {
        SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", AbslView(DTypeName(c.wire))));
        RunnerOptions options = Options(16);
        options.plan.wire = c.wire;
        options.plan.all_reduce = policy;
        RankedModel cut;
        ASSERT_OK(cut.Open("llama-gqa"));
        ASSERT_OK(cut.Start(options, ranks, {}, Machines::kProcesses));
        ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens));
        EXPECT_GE(NormalizedError(got, want), c.least);
        EXPECT_LE(NormalizedError(got, want), c.most);
      }
    }
  }
}

// What explain says that ranks send each other, they send: bytes counted by the ports.
TEST(RankRunner, ExplainedTraffic_IsWhatPortsCount) {
  for (const auto& [ranks, wire, policy, overlap] :
       {std::tuple(2, DType::kF32, AllReducePolicy::kAuto, OverlapPolicy::kOff),
        std::tuple(2, DType::kF32, AllReducePolicy::kAuto, OverlapPolicy::kOn),
        std::tuple(3, DType::kBF16, AllReducePolicy::kByParts, OverlapPolicy::kOff),
        std::tuple(5, DType::kQ8_0, AllReducePolicy::kDoubling, OverlapPolicy::kOff)}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    RunnerOptions options = Options(overlap == OverlapPolicy::kOn ? 64 : 16);
    options.plan.overlap = overlap;
    options.reserve_outputs = 1;
    options.plan.wire = wire;
    options.plan.all_reduce = policy;
    RankedModel cut;
    ASSERT_OK(cut.Open("llama-gqa"));
    ASSERT_OK(cut.Start(options, ranks, {}, Machines::kProcesses));
    ASSERT_OK_AND_ASSIGN(const ExplainReport report, cut.Explain(options));
    int64_t position = 0;
    for (const ExplainPhase& phase : report.phases) {
      const std::vector<EdgeTraffic> before = cut.Sent(ranks);
      std::vector<BatchToken> batch;
      for (int64_t t = 0; t < phase.tokens; ++t, ++position) {
        batch.push_back({.token = static_cast<int32_t>(3 + t), .position = position});
      }
      batch.back().output = true;
      ASSERT_OK(cut.runner->Step(batch));
      const std::vector<EdgeTraffic> after = cut.Sent(ranks);
      ASSERT_EQ(static_cast<int>(phase.rank_traffic.size()), ranks);
      for (int r = 0; r < ranks; ++r) {
        EXPECT_GT(phase.rank_traffic[r].bytes, 0);
        EXPECT_EQ(after[r].bytes - before[r].bytes, phase.rank_traffic[r].bytes) << phase.name;
        EXPECT_EQ(after[r].messages - before[r].messages, phase.rank_traffic[r].messages);
      }
    }
  }
}

// What logits are made of: the output matrix by them gives the logits.
TEST(RankRunner, HiddenStates_TimesTheOutput_AreLogits) {
  for (const char* name : {"llama-f16", "qwen2"}) {
    SCOPED_TRACE(name);
    RankedModel one;
    ASSERT_OK(one.Open(name));
    ASSERT_OK(one.StartWhole(Options(16)));
    const std::vector<int32_t>& tokens = one.golden.cases.back().tokens;
    ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, one.Logits(tokens));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> states, one.Hidden(tokens, 16));
    const GgufFile& file = one.model().file();
    const GgufTensor* output = file.FindTensor("output.weight");
    if (output == nullptr) output = file.FindTensor("token_embd.weight");
    const auto width = static_cast<size_t>(output->layout.ne[0]);
    const auto rows = static_cast<size_t>(output->layout.ne[1]);
    const absl::Span<const uint8_t> bytes = file.TensorBytes(*output);
    const size_t row_bytes = bytes.size() / rows;
    const absl::Span<const float> last = absl::MakeConstSpan(states).last(width);
    const absl::Span<const float> want = absl::MakeConstSpan(logits).last(rows);
    std::vector<float> got, weights(width);
    for (size_t row = 0; row < rows; ++row) {
      ASSERT_OK(Dequantize(output->layout.dtype, bytes.subspan(row * row_bytes, row_bytes),
                           absl::MakeSpan(weights)));
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += double{weights[i]} * last[i];
      got.push_back(static_cast<float>(sum));
    }
    EXPECT_LE(NormalizedError(got, want), 1e-4);
  }
}

TEST(RankRunner, BadGroups_AreRefusedWithTheFlag) {
  RankedModel one;
  ASSERT_OK(one.Open("llama-gqa"));
  EXPECT_THAT(
      one.Start(Options(16), 3, {}, Machines::kProcesses, 2),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--layout: groups of 2 of 3")));
  RankedModel two;
  ASSERT_OK(two.Open("llama-gqa"));
  EXPECT_THAT(
      two.Start(Options(16), 2, {0, 0}, Machines::kProcesses),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the group of w0.cpu0 has no share")));
}

}  // namespace
}  // namespace weft
