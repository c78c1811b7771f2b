// What the host's observer sees, and how it stops a step.
#include <cstring>

#include "common/base/mutex.h"
#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr NodeId kDoubled{1}, kRows{4};
constexpr int32_t kDoubledTag = 70, kRowsTag = -3;

// Doubled on device 0; squared on device 1, and the square in rows of two (a view), plus 1.
Program Observed() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId there = builder.Copy(doubled, DType::kF32);
  const NodeId squared = builder.Name(builder.Mul(there, there), "squared");
  const NodeId rows = builder.Reshape(squared, {2, 2, 1, 1});
  builder.MarkOutput(builder.Name(builder.Scale(rows, 1, 1), "result"));
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0, 1, 1, 1, 1}, 2);
  program.streams[0].commands.emplace_back(ObserveCommand{kDoubled, kDoubledTag});
  program.streams[1].commands.emplace_back(ObserveCommand{kRows, kRowsTag});
  return program;
}

class ObserverTest : public ::testing::Test {
 protected:
  void Start(StepObserver observer) {
    fakes_ = MakeFakeDevices(2, 3);
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    options.observer = std::move(observer);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(const ProgramId program, host_->Install(Observed()));
    ASSERT_OK_AND_ASSIGN(instance_, host_->Instantiate(program, {}));
  }

  absl::StatusOr<StepOutput> Run(int64_t step) {
    const float x[] = {static_cast<float>(step), 1, 2, 3};
    StepInput input;
    input.step = step;
    input.inputs = {{reinterpret_cast<const uint8_t*>(x), sizeof(x)}};
    const absl::Status launched = host_->Launch(instance_, input);
    if (!launched.ok()) return launched;
    return host_->Await(step, Soon());
  }

  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<LocalProgramHost> host_;
  InstanceId instance_{};
};

TEST_F(ObserverTest, SeesEachTensorOfEachStep) {
  Mutex mutex;
  std::map<std::pair<int64_t, int32_t>, std::vector<float>> seen;
  Start([&](int64_t step, int32_t tag, absl::Span<const uint8_t> bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    MutexLock lock(mutex);
    return seen.emplace(std::pair(step, tag), std::move(values)).second;
  });
  ASSERT_OK(Run(1));
  ASSERT_OK(Run(2));
  using Floats = std::vector<float>;
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ((seen[{1, kDoubledTag}]), (Floats{2, 2, 4, 6}));
  EXPECT_EQ((seen[{1, kRowsTag}]), (Floats{4, 4, 16, 36}));
  EXPECT_EQ((seen[{2, kDoubledTag}]), (Floats{4, 2, 4, 6}));
  EXPECT_EQ((seen[{2, kRowsTag}]), (Floats{16, 4, 16, 36}));
}

TEST_F(ObserverTest, False_EndsTheWholeStep_LaterOnesRun) {
  for (const int32_t stopped : {kDoubledTag, kRowsTag}) {
    Start([&](int64_t step, int32_t tag, absl::Span<const uint8_t>) {
      return step != 2 || tag != stopped;
    });
    ASSERT_OK(Run(1));
    EXPECT_THAT(Run(2),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("the observer stopped the step")));
    ASSERT_OK_AND_ASSIGN(const StepOutput output, Run(3));
    float first = 0;
    std::memcpy(&first, output.outputs[0].data(), sizeof(first));
    EXPECT_EQ(first, 37);
    host_.reset();
  }
}

TEST_F(ObserverTest, WithoutAnObserver_CommandsCostNothing) {
  Start(nullptr);
  ASSERT_OK(Run(1));
  for (const auto& fake : fakes_) EXPECT_EQ(fake->traffic().synchronizations, 1) << fake->name();
  host_.reset();
  Start([](int64_t, int32_t, absl::Span<const uint8_t>) { return true; });
  ASSERT_OK(Run(1));
  for (const auto& fake : fakes_) EXPECT_EQ(fake->traffic().synchronizations, 2) << fake->name();
}

}  // namespace
}  // namespace weft
