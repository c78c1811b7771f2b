// A session of the serving engine for tests: a small model on the CPU, or over fake accelerators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/cpu/cpu_device.h"
#include "common/program/local_program_host.h"
#include "coordinator/models/model.h"
#include "coordinator/serving/serving_session.h"
#include "tests/support/fake_device.h"

namespace weft {

struct DemoSessionOptions {
  int64_t sequences = 4;
  int64_t context = 96;
  int64_t cache_tokens = 0;
  int64_t candidates = 64;
  int fakes = 0;  // that hold the layers, one part each
  std::function<absl::Status(const Graph&, NodeId)> before_node;  // of fakes
  std::function<absl::Status()> lost;                             // OK where it is null
};

class DemoSession final : public ServingSession {
 public:
  // `model` and `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<ServingSession>> Open(const Model& model,
                                                              const DemoSessionOptions& options,
                                                              const Clock& clock);

  ModelRunner& runner() override { return *runner_; }
  absl::Status lost() override { return lost_ ? lost_() : absl::OkStatus(); }
  int64_t stages() const override { return stages_; }

 private:
  int64_t stages_ = 1;
  std::function<absl::Status()> lost_;
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<CpuDevice> cpu_;
  std::unique_ptr<LocalProgramHost> host_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace weft
