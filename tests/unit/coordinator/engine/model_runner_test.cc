#include "coordinator/engine/model_runner.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/cpu_features.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "coordinator/engine/generator.h"
#include "coordinator/models/model.h"
#include "coordinator/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

// A golden model on a CPU device of its own.
struct Rig {
  GoldenModel golden;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;
  std::unique_ptr<Device> device;
  std::unique_ptr<LocalProgramHost> host;
  SystemClock clock;
  std::unique_ptr<ModelRunner> runner;

  absl::Status Start(const std::string& name, const RunnerOptions& options, int threads = 2) {
    golden = ReadGoldenModel(TestDataFolder() + "/models/" + name);
    auto opened = GgufFile::Open(golden.model_path);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
    auto made = Model::Create(*file);
    if (!made.ok()) return made.status();
    model = *std::move(made);
    CpuDeviceOptions device_options;
    device_options.threads = threads;
    device_options.instruction_set = BestInstructionSet();
    auto cpu = CpuDevice::Create(device_options);
    if (!cpu.ok()) return cpu.status();
    device = *std::move(cpu);
    LocalProgramHostOptions host_options;
    host_options.devices = {device.get()};
    auto local = LocalProgramHost::Create(host_options);
    if (!local.ok()) return local.status();
    host = *std::move(local);
    auto created = ModelRunner::Create(*model, *device, *host, clock, options);
    if (!created.ok()) return created.status();
    runner = *std::move(created);
    return absl::OkStatus();
  }
};

RunnerOptions Options(int64_t ubatch, int64_t sequences = 1) {
  RunnerOptions options;
  options.context = 128;
  options.ubatch = ubatch;
  options.sequences = sequences;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  return options;
}

std::vector<float> AllLogits(const std::string& name, int64_t ubatch, int threads) {
  Rig rig;
  EXPECT_OK(rig.Start(name, Options(ubatch), threads));
  auto logits = Prefill(*rig.runner, rig.golden.cases.back().tokens, 0, true);
  EXPECT_OK(logits);
  return logits.ok() ? *std::move(logits) : std::vector<float>();
}

// Decision 20: how work is divided changes no bit. Steps of 7 and 33 are padded to buckets of 8 and
// 64, so this is also the test that padding changes nothing (decision 14).
TEST(ModelRunner, StepSizeAndThreads_ChangeNoBit) {
  for (const char* name : {"llama-gqa", "llama-moe", "qwen3moe"}) {
    SCOPED_TRACE(name);
    const std::vector<float> one = AllLogits(name, 1, 1);
    EXPECT_EQ(one, AllLogits(name, 7, 1));
    EXPECT_EQ(one, AllLogits(name, 16, 3));
    EXPECT_EQ(one, AllLogits(name, 33, 2));
    EXPECT_EQ(one, AllLogits(name, 512, 2));
  }
}

// Three sequences in one batch, interleaved at random, give each the bits it has alone.
TEST(ModelRunner, SequencesInCompany_ChangeNoBit) {
  constexpr uint64_t kSeed = 9;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  Rig rig;
  ASSERT_OK(rig.Start("qwen3", Options(16, 3)));
  std::vector<std::vector<int32_t>> texts(3);
  std::vector<std::vector<float>> alone(3);
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < 20; ++i) {
      texts[s].push_back(static_cast<int32_t>(random.Between(0, rig.runner->n_vocab() - 1)));
    }
    rig.runner->Truncate(0, 0);
    ASSERT_OK_AND_ASSIGN(alone[s], Prefill(*rig.runner, texts[s], 0, true));
  }
  rig.runner->Truncate(0, 0);
  std::vector<int64_t> at(3, 0);
  std::vector<std::vector<float>> together(3);
  const auto width = static_cast<size_t>(rig.runner->n_vocab());
  while (at[0] < 20 || at[1] < 20 || at[2] < 20) {
    std::vector<BatchToken> batch;
    for (int64_t i = random.Between(1, 16); i > 0; --i) {
      const auto s = static_cast<int32_t>(random.Between(0, 2));
      if (at[s] == 20) continue;
      batch.push_back({texts[s][at[s]], at[s], s, true});
      ++at[s];
    }
    if (batch.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const std::vector<float> rows, rig.runner->Step(batch));
    for (size_t i = 0; i < batch.size(); ++i) {
      auto& mine = together[batch[i].sequence];
      mine.insert(mine.end(), rows.begin() + i * width, rows.begin() + (i + 1) * width);
    }
  }
  EXPECT_EQ(together, alone);
}

TEST(ModelRunner, Truncate_ReplaysToTheSameBits) {
  Rig rig;
  ASSERT_OK(rig.Start("llama-gqa", Options(16)));
  const std::vector<int32_t>& tokens = rig.golden.cases.back().tokens;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> first, Prefill(*rig.runner, tokens, 0, false));
  rig.runner->Truncate(0, 10);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> again,
                       Prefill(*rig.runner, absl::MakeConstSpan(tokens).subspan(10), 10, false));
  EXPECT_EQ(first, again);
}

TEST(ModelRunner, CacheTypes_StayWithinTolerance) {
  for (const auto& [dtype, tolerance] :
       std::vector<std::pair<DType, double>>{{DType::kF16, 1e-5}, {DType::kF32, 1e-6}}) {
    Rig rig;
    RunnerOptions options = Options(16);
    options.key_type = options.value_type = dtype;
    ASSERT_OK(rig.Start("llama-gqa", options));
    const GoldenCase& c = rig.golden.cases.back();
    ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, Prefill(*rig.runner, c.tokens, 0, true));
    EXPECT_LE(NormalizedError(logits, c.exact), tolerance);
  }
}

TEST(ModelRunner, SteadyState_BuildsNoGraph) {
  Rig rig;
  ASSERT_OK(rig.Start("llama-gqa", Options(16)));
  ASSERT_OK(Prefill(*rig.runner, {1, 2, 3}, 0, false).status());
  const BatchToken first = {4, 3, 0, true};
  ASSERT_OK(rig.runner->Step({&first, 1}).status());
  const int64_t built = rig.runner->counters().graphs_built;
  for (int64_t i = 4; i < 60; ++i) {
    const BatchToken next = {5, i, 0, true};
    ASSERT_OK(rig.runner->Step({&next, 1}).status());
  }
  EXPECT_EQ(rig.runner->counters().graphs_built, built);
}

TEST(ModelRunner, BadBatches_AreRefusedAndChangeNothing) {
  Rig rig;
  ASSERT_OK(rig.Start("llama-gqa", Options(16)));
  const auto step = [&](const BatchToken& token) { return rig.runner->Step({&token, 1}); };
  EXPECT_THAT(step({1000, 0, 0, true}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("token id 1000")));
  EXPECT_THAT(step({-1, 0, 0, true}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("token id -1")));
  EXPECT_THAT(step({1, 5, 0, true}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("position 5")));
  EXPECT_THAT(step({1, 0, 3, true}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("sequence 3")));
  EXPECT_THAT(rig.runner->Step({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 tokens")));
  const GoldenCase& c = rig.golden.cases.back();
  ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, Prefill(*rig.runner, c.tokens, 0, true));
  EXPECT_LE(NormalizedError(logits, c.exact), rig.golden.tol_exact);
}

TEST(ModelRunner, FullContext_IsAnErrorThatSaysWhatToDo) {
  Rig rig;
  RunnerOptions options = Options(16);
  options.context = 20;
  ASSERT_OK(rig.Start("llama-gqa", options));
  const std::vector<int32_t> tokens(21, 1);
  EXPECT_THAT(Prefill(*rig.runner, tokens, 0, false),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("raise -c")));
  GenerateCallbacks callbacks;
  callbacks.choose = [](absl::Span<const float> row) -> absl::StatusOr<int32_t> {
    return ArgMax(row);
  };
  EXPECT_THAT(Generate(*rig.runner, rig.clock, tokens, 4, callbacks),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("21 tokens")));
  // A prompt that fills the context exactly still gives one token (users.md, fault 101).
  const std::vector<int32_t> full(20, 1);
  ASSERT_OK_AND_ASSIGN(const GenerateResult result,
                       Generate(*rig.runner, rig.clock, full, 4, callbacks));
  EXPECT_EQ(result.stop, StopReason::kContextFull);
  EXPECT_EQ(result.tokens.size(), 1);
}

TEST(ModelRunner, BadOptions_NameTheFlag) {
  Rig rig;
  RunnerOptions options = Options(16);
  options.key_type = DType::kQ8_0;  // heads of 8 elements
  EXPECT_THAT(rig.Start("llama-gqa", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-ctk")));
  options = Options(16);
  options.value_type = DType::kQ4_K;
  EXPECT_THAT(rig.Start("llama-gqa", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-ctv")));
  options = Options(0);
  EXPECT_THAT(rig.Start("llama-gqa", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ubatch")));
}

// Layers over two fake accelerators with memories of their own, and a CPU for the embedding.
struct CutRig {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<FakeDevice>> fakes;
  std::unique_ptr<CpuDevice> cpu;
  std::unique_ptr<LocalProgramHost> host;
  SystemClock clock;
  std::unique_ptr<ModelRunner> runner;

  absl::Status Start(const RunnerOptions& options, int64_t memory_bytes = int64_t{1} << 32) {
    const GoldenModel golden = ReadGoldenModel(TestDataFolder() + "/models/llama-gqa");
    ASSIGN_OR_RETURN(file, GgufFile::Open(golden.model_path));
    ASSIGN_OR_RETURN(model, Model::Create(*file));
    PlacedDevices placed;
    for (int i = 0; i < 2; ++i) {
      FakeDeviceOptions fake;
      fake.name = absl::StrCat("fake", i);
      fake.memory_bytes = memory_bytes;
      fakes.push_back(std::make_unique<FakeDevice>(fake));
      placed.devices.push_back(fakes.back().get());
    }
    ASSIGN_OR_RETURN(cpu, CpuDevice::Create(CpuDeviceOptions{}));
    placed.devices.push_back(cpu.get());
    PlacementOptions placement;
    placement.tensor_split = {1, 1};
    ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model, placed.devices, placement));
    LocalProgramHostOptions host_options;
    host_options.devices = placed.devices;
    ASSIGN_OR_RETURN(host, LocalProgramHost::Create(host_options));
    ASSIGN_OR_RETURN(runner, ModelRunner::Create(*model, placed, *host, clock, options));
    return absl::OkStatus();
  }
};

// Copies that do not fit are done without, with the same result.
TEST(ModelRunner, PipelineThatDoesNotFit_IsDropped) {
  RunnerOptions options = Options(16);
  options.pipeline = false;
  CutRig serial;
  ASSERT_OK(serial.Start(options));
  EXPECT_EQ(serial.runner->max_in_flight(), 1);
  options.pipeline = true;
  CutRig ample;
  ASSERT_OK(ample.Start(options));
  EXPECT_EQ(ample.runner->max_in_flight(), kMaxStepsInFlight);
  const int64_t least = std::max(serial.fakes[0]->used_bytes(), serial.fakes[1]->used_bytes());
  ASSERT_GT(std::max(ample.fakes[0]->used_bytes(), ample.fakes[1]->used_bytes()), least);
  CutRig tight;
  ASSERT_OK(tight.Start(options, least));
  EXPECT_EQ(tight.runner->max_in_flight(), 1);
  const std::vector<int32_t> tokens(50, 7);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, Prefill(*serial.runner, tokens, 0, true));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> overlapped,
                       Prefill(*ample.runner, tokens, 0, true));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> without, Prefill(*tight.runner, tokens, 0, true));
  EXPECT_EQ(overlapped, want);
  EXPECT_EQ(without, want);
  EXPECT_GT(ample.host->counters().overlapped, 0);
}

// After a step fails, those behind it are dropped and the sequence is as before.
TEST(ModelRunner, FailedStepInFlight_LeavesTheSequenceAsBefore) {
  CutRig rig;
  ASSERT_OK(rig.Start(Options(16)));
  const std::vector<int32_t> tokens(8, 3);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, Prefill(*rig.runner, tokens, 0, true));
  rig.runner->Truncate(0, 4);
  const auto launch = [&](int64_t position) {
    const BatchToken token = {3, position, 0, true};
    return rig.runner->Launch({&token, 1});
  };
  ASSERT_OK(launch(4));
  ASSERT_OK(launch(5));
  EXPECT_THAT(launch(9), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("position 9")));
  EXPECT_EQ(rig.runner->in_flight(), 0);
  // Positions 4 and 5 were taken back.
  ASSERT_OK_AND_ASSIGN(const std::vector<float> again,
                       Prefill(*rig.runner, absl::MakeConstSpan(tokens).subspan(4), 4, true));
  const auto width = static_cast<std::ptrdiff_t>(rig.runner->n_vocab());
  EXPECT_TRUE(std::equal(again.begin(), again.end(), want.begin() + 4 * width));
}

// A host that says that memory was replaced once more than it was.
class GrowingHost final : public ProgramHost {
 public:
  explicit GrowingHost(LocalProgramHost& host) : host_(host) {}
  absl::StatusOr<ProgramId> Install(Program program) override {
    return host_.Install(std::move(program));
  }
  absl::StatusOr<InstanceId> Instantiate(ProgramId program,
                                         absl::Span<const SlotBinding> bindings) override {
    return host_.Instantiate(program, bindings);
  }
  absl::Status Release(InstanceId instance) override { return host_.Release(instance); }
  absl::Status Launch(InstanceId instance, const StepInput& input) override {
    return host_.Launch(instance, input);
  }
  absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline) override {
    return host_.Await(step, deadline);
  }
  absl::Status Cancel(int64_t step) override { return host_.Cancel(step); }
  HostCounters counters() override {
    HostCounters counters = host_.counters();
    counters.memory_replaced += grown;
    counters.last_reason = "arena 0 grew from 1 to 2 bytes";
    return counters;
  }

  int64_t grown = 0;

 private:
  LocalProgramHost& host_;
};

TEST(ModelRunner, UnexpectedReplan_IsCountedAndAnErrorWhereForbidden) {
  Rig rig;
  ASSERT_OK(rig.Start("llama-gqa", Options(16)));
  for (const bool forbid : {false, true}) {
    RunnerOptions options = Options(16);
    options.forbid_replans = forbid;
    LocalProgramHostOptions host_options;
    host_options.devices = {rig.device.get()};
    ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(host_options));
    GrowingHost growing(*host);
    ASSERT_OK_AND_ASSIGN(const auto runner,
                         ModelRunner::Create(*rig.model, *rig.device, growing, rig.clock, options));
    ASSERT_OK(Prefill(*runner, {1, 2, 3}, 0, false).status());
    EXPECT_EQ(runner->counters().replans, 0);
    growing.grown = 1;
    const BatchToken next = {4, 3, 0, true};
    const auto step = runner->Step({&next, 1});
    if (forbid) {
      EXPECT_THAT(step, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("re-plan: arena 0 grew from 1 to 2 bytes")));
    } else {
      EXPECT_OK(step);
    }
    EXPECT_EQ(runner->counters().replans, 1);
  }
}

}  // namespace
}  // namespace weft
