// Steps that return candidates: texts are those of all logits, rows are those of the logits.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "coordinator/engine/generator.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/models/model.h"
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

RunnerOptions Options() {
  RunnerOptions options;
  options.context = 128;
  options.ubatch = 16;
  options.sequences = 3;
  options.reserve_outputs = 4;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  options.forbid_replans = true;
  return options;
}

// A golden model on the CPU, or cut over two fake accelerators before it.
struct Rig {
  GoldenModel golden;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<FakeDevice>> fakes;
  std::unique_ptr<CpuDevice> cpu;
  std::unique_ptr<LocalProgramHost> host;
  SystemClock clock;
  std::unique_ptr<ModelRunner> runner;

  absl::Status Start(const std::string& name, const RunnerOptions& options, int fake_count = 0) {
    golden = ReadGoldenModel(TestDataFolder() + "/models/" + name);
    ASSIGN_OR_RETURN(file, GgufFile::Open(golden.model_path));
    ASSIGN_OR_RETURN(model, Model::Create(*file));
    PlacedDevices placed;
    for (int i = 0; i < fake_count; ++i) {
      FakeDeviceOptions fake;
      fake.name = absl::StrCat("fake", i);
      fakes.push_back(std::make_unique<FakeDevice>(fake));
      placed.devices.push_back(fakes.back().get());
    }
    ASSIGN_OR_RETURN(cpu, CpuDevice::Create(CpuDeviceOptions{}));
    placed.devices.push_back(cpu.get());
    PlacementOptions placement;
    if (fake_count > 0) placement.tensor_split.assign(fake_count, 1);
    ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model, placed.devices, placement));
    LocalProgramHostOptions host_options;
    host_options.devices = placed.devices;
    ASSIGN_OR_RETURN(host, LocalProgramHost::Create(host_options));
    ASSIGN_OR_RETURN(runner, ModelRunner::Create(*model, placed, *host, clock, options));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int32_t>> Text(const SamplerOptions& options) {
    Sampler sampler(options);
    const std::vector<int32_t>& prompt = golden.cases.back().tokens;
    for (const int32_t token : prompt) sampler.Accept(token);
    GenerateCallbacks callbacks;
    callbacks.choose = [&](absl::Span<const float> logits) { return sampler.Sample(logits); };
    callbacks.choose_candidate = [&](const CandidateRow& row) { return sampler.SampleFrom(row); };
    callbacks.changed = [&] { return sampler.ChangedIds(); };
    callbacks.emit = [&](int32_t token) {
      sampler.Accept(token);
      return true;
    };
    ASSIGN_OR_RETURN(const GenerateResult result, Generate(*runner, clock, prompt, 40, callbacks));
    return result.tokens;
  }
};

SamplerOptions Sampling(float temperature, int32_t top_k, float top_p, float min_p,
                        float repeat_penalty) {
  SamplerOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  options.repeat_penalty = repeat_penalty;
  options.seed = 5;
  return options;
}

RunnerOptions WithCandidates(int64_t candidates, int64_t changed) {
  RunnerOptions options = Options();
  options.candidates = candidates;
  options.changed = changed;
  return options;
}

TEST(CandidateSteps, Texts_AreThoseOfAllLogits) {
  const SamplerOptions kSets[] = {Sampling(0, 40, 0.95f, 0.05f, 1), Sampling(1, 8, 0.95f, 0.05f, 1),
                                  Sampling(1, 8, 1, 0, 1.3f), Sampling(0, 0, 1, 0, 1.5f)};
  for (const char* name : {"llama-gqa", "qwen3moe"}) {
    for (const int fakes : {0, 2}) {
      SCOPED_TRACE(absl::StrCat(name, " fakes ", fakes));
      Rig all, few;
      ASSERT_OK(all.Start(name, Options(), fakes));
      ASSERT_OK(few.Start(name, WithCandidates(8, 64), fakes));
      for (const SamplerOptions& options : kSets) {
        ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> want, all.Text(options));
        ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> got, few.Text(options));
        EXPECT_EQ(got, want);
      }
      EXPECT_EQ(few.runner->counters().logits_fetched, 0);
      EXPECT_EQ(few.runner->counters().replans, 0);
    }
  }
}

// A flat softmax without truncation is beyond any candidates: the token is computed again.
TEST(CandidateSteps, CandidatesThatDoNotTell_FetchLogits_WithTheSameText) {
  for (const int fakes : {0, 2}) {
    Rig all, few;
    ASSERT_OK(all.Start("llama-gqa", Options(), fakes));
    ASSERT_OK(few.Start("llama-gqa", WithCandidates(8, 0), fakes));
    const SamplerOptions options = Sampling(1.5f, 0, 1, 0, 1);
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> want, all.Text(options));
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> got, few.Text(options));
    EXPECT_EQ(got, want);
    EXPECT_EQ(few.runner->counters().logits_fetched, static_cast<int64_t>(got.size()));
    EXPECT_EQ(all.runner->counters().logits_fetched, 0);
  }
}

// What a row of candidates says is what its row of logits says.
void ExpectRowOf(absl::Span<const float> logits, const std::vector<int32_t>& changed,
                 const CandidateRow& row) {
  std::vector<Candidate> unchanged;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const Candidate one = {id, logits[i]};
    if (std::find(changed.begin(), changed.end(), id) == changed.end()) {
      unchanged.push_back(one);
    } else {
      EXPECT_THAT(row.changed, testing::Contains(one));
    }
  }
  std::sort(unchanged.begin(), unchanged.end(), Before);
  ASSERT_LE(row.best.size(), unchanged.size());
  EXPECT_EQ(row.best,
            std::vector<Candidate>(unchanged.begin(), unchanged.begin() + row.best.size()));
  EXPECT_EQ(row.rest_max, unchanged[row.best.size()].logit);
}

TEST(CandidateSteps, SeveralRows_HaveTheirOwnChangedIds) {
  Rig rig;
  ASSERT_OK(rig.Start("llama-gqa", WithCandidates(8, 100)));
  const std::vector<BatchToken> batch = {
      {3, 0, 0, false}, {4, 1, 0, true}, {5, 0, 1, true}, {6, 0, 2, true}};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, rig.runner->Step(batch));
  for (int32_t s = 0; s < 3; ++s) rig.runner->Truncate(s, 0);
  std::vector<std::vector<int32_t>> changed = {{7, 1}, {}, {}};
  for (int32_t id = 0; id < 70; ++id) changed[2].push_back(id);
  ASSERT_OK(rig.runner->LaunchForCandidates(batch, changed));
  ASSERT_OK_AND_ASSIGN(const std::vector<CandidateRow> rows, rig.runner->CollectCandidates());
  ASSERT_EQ(rows.size(), 3);
  const auto width = static_cast<size_t>(rig.runner->n_vocab());
  for (size_t i = 0; i < 3; ++i) {
    ExpectRowOf(absl::MakeConstSpan(logits).subspan(i * width, width), changed[i], rows[i]);
  }
}

TEST(CandidateSteps, WrongRequests_AreErrorsThatLeaveTheSequence) {
  Rig without, rig;
  ASSERT_OK(without.Start("llama-gqa", Options()));
  ASSERT_OK(rig.Start("llama-gqa", WithCandidates(8, 64)));
  const BatchToken token = {3, 0, 0, true};
  const std::vector<std::vector<int32_t>> none = {{}};
  EXPECT_THAT(without.runner->LaunchForCandidates({&token, 1}, none),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no candidates")));
  EXPECT_THAT(rig.runner->LaunchForCandidates({&token, 1}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("changed ids of 0 rows")));
  const std::vector<std::vector<int32_t>> many = {std::vector<int32_t>(65, 1)};
  EXPECT_THAT(rig.runner->LaunchForCandidates({&token, 1}, many),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65 changed ids")));
  ASSERT_OK(rig.runner->LaunchForCandidates({&token, 1}, none));
  EXPECT_THAT(rig.runner->Collect(), StatusIs(absl::StatusCode::kFailedPrecondition, testing::_));
  EXPECT_OK(rig.runner->CollectCandidates());
}

}  // namespace
}  // namespace weft
