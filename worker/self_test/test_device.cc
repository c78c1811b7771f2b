#include "worker/self_test/test_device.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "worker/self_test/case_run.h"
#include "worker/self_test/test_cases.h"

namespace weft {
namespace {

using self_test::TestCase;

// What the thread that tests and the one that waits share; either may end first.
struct Progress {
  Mutex mutex;
  CondVar changed;
  std::string at ABSL_GUARDED_BY(mutex) = "opening a stream";  // what is being tested
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
  std::optional<absl::StatusOr<Quarantine>> result ABSL_GUARDED_BY(mutex);
};

class Tester {
 public:
  Tester(Device& device, uint64_t seed)
      : device_(device), random_(seed), quarantine_(device.name()) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(backend_, device_.OpenBackend({}));
    return absl::OkStatus();
  }

  // Runs a case that the device supports. Errors: of the oracle, and of opening a stream.
  absl::Status Test(const TestCase& test_case) {
    const self_test::CaseData data = DataOf(test_case, random_);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> want, RunOnOracle(test_case, data));
    RETURN_IF_ERROR(Compare(test_case, data, want, /*in_place=*/false));
    if (!RunsInPlace(test_case)) return absl::OkStatus();
    return Compare(test_case, data, want, /*in_place=*/true);
  }

  Quarantine TakeQuarantine() && { return std::move(quarantine_); }

 private:
  absl::Status Compare(const TestCase& test_case, const self_test::CaseData& data,
                       const std::vector<uint8_t>& want, bool in_place) {
    const Graph& graph = test_case.graph;
    const OpKind kind = OpKindOf(graph, test_case.result);
    const absl::StatusOr<std::vector<uint8_t>> got =
        RunOnDevice(device_, *backend_, test_case, data, in_place);
    if (!got.ok()) {
      quarantine_.Add(kind, absl::StrCat("it failed: ", got.status().message()));
      backend_ = nullptr;  // its stream may be of no more use
      return Open();
    }
    const TensorLayout& layout = graph.layout(graph.Root(test_case.result));
    const double error = self_test::ErrorOf(layout, *got, want);
    if (error <= test_case.limit) return absl::OkStatus();
    quarantine_.Add(kind, absl::StrCat("error ", error, ", limit ", test_case.limit,
                                       in_place ? ", over its source" : ""));
    return absl::OkStatus();
  }

  Device& device_;
  Random random_;
  Quarantine quarantine_;
  std::unique_ptr<Backend> backend_;
};

absl::StatusOr<Quarantine> TestCases(Device& device, uint64_t seed, Progress& progress) {
  Tester tester(device, seed);
  RETURN_IF_ERROR(tester.Open());
  for (const TestCase& test_case : self_test::AllCases()) {
    if (!device.Supports(test_case.graph, test_case.result).ok()) continue;
    {
      MutexLock lock(progress.mutex);
      if (progress.abandoned) break;
      progress.at = OpKindText(OpKindOf(test_case.graph, test_case.result));
    }
    RETURN_IF_ERROR(tester.Test(test_case));
  }
  return std::move(tester).TakeQuarantine();
}

}  // namespace

absl::StatusOr<Quarantine> TestDevice(Device& device, const SelfTestOptions& options) {
  // Shared, because the thread may outlive this call.
  const auto progress = std::make_shared<Progress>();
  std::thread thread([&device, seed = options.seed, progress] {
    absl::StatusOr<Quarantine> result = TestCases(device, seed, *progress);
    MutexLock lock(progress->mutex);
    progress->result = std::move(result);
    progress->changed.NotifyAll();
  });
  const Clock::TimePoint deadline = SystemClock().Now() + options.deadline;
  MutexLock lock(progress->mutex);
  while (!progress->result && progress->changed.WaitUntil(progress->mutex, deadline)) {
  }
  // The thread needs the mutex only until its result is there.
  if (progress->result) {
    thread.join();
    return *std::move(progress->result);
  }
  progress->abandoned = true;
  thread.detach();
  return absl::DeadlineExceededError(absl::StrCat(device.name(), ": its self-test did not end in ",
                                                  options.deadline.count(), " ms, it was at ",
                                                  progress->at));
}

}  // namespace weft
