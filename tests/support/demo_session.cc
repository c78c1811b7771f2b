#include "tests/support/demo_session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/placement/model_placement.h"

namespace weft {

absl::StatusOr<std::unique_ptr<ServingSession>> DemoSession::Open(const Model& model,
                                                                  const DemoSessionOptions& options,
                                                                  const Clock& clock) {
  auto session = std::make_unique<DemoSession>();
  session->lost_ = options.lost;
  session->stages_ = std::max(1, options.fakes);
  PlacedDevices placed;
  for (int i = 0; i < options.fakes; ++i) {
    FakeDeviceOptions fake;
    fake.name = absl::StrCat("fake", i);
    fake.delays = false;
    fake.before_node = options.before_node;
    session->fakes_.push_back(std::make_unique<FakeDevice>(fake));
    placed.devices.push_back(session->fakes_.back().get());
  }
  CpuDeviceOptions cpu;
  cpu.threads = 1;
  ASSIGN_OR_RETURN(session->cpu_, CpuDevice::Create(cpu));
  placed.devices.push_back(session->cpu_.get());
  PlacementOptions placement;
  if (options.fakes > 0) placement.tensor_split.assign(options.fakes, 1);
  ASSIGN_OR_RETURN(placed.placement, PlaceModel(model, placed.devices, placement));
  LocalProgramHostOptions host;
  host.devices = placed.devices;
  ASSIGN_OR_RETURN(session->host_, LocalProgramHost::Create(host));
  RunnerOptions runner;
  runner.context = options.context;
  runner.sequences = options.sequences;
  runner.cache_tokens = options.cache_tokens;
  runner.reserve_outputs = options.sequences;
  runner.ubatch = 32;
  runner.candidates = options.candidates;
  runner.changed = 64;
  runner.key_type = DType::kF32;
  runner.value_type = DType::kF32;
  ASSIGN_OR_RETURN(session->runner_,
                   ModelRunner::Create(model, placed, *session->host_, clock, runner));
  return session;
}

}  // namespace weft
