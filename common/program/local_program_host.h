// Runs programs on devices of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/program/program_host.h"
#include "common/program/program_instance.h"
#include "common/program/program_limits.h"
#include "common/program/program_store.h"
#include "common/program/session_memory.h"
#include "common/program/step_executor.h"

namespace weft {

struct LocalProgramHostOptions {
  // Bound to Program::devices by position. They outlive the host, as do their buffers.
  std::vector<Device*> devices;
  ProgramLimits limits;
  Logger* logger = nullptr;  // may be null
  // Sees what ObserveCommands show; empty: they are skipped.
  StepObserver observer;
  // This process's end of the edges of its group; outlives the host. Null: programs with edges are
  // refused.
  EdgePort* edges = nullptr;
  // The same for what ranks send each other. Null: programs whose communicators have ranks in other
  // processes are refused.
  EdgePort* collectives = nullptr;
  CollectiveMeter* meter = nullptr;  // of what ranks here do together; outlives the host
  // Called once for each step that was launched, as soon as it has finished, also if it failed or
  // was cancelled; not for those that the host's destructor ends. On the thread of the device that
  // finished last (for a step without any work: on the one that launched it or finished the step
  // before), of several steps at once and in any order. It may call Await and Cancel; Await for
  // that step returns at once. It must not call anything else of the host, nor wait for other
  // steps: the device computes nothing until it returns.
  FinishedCallback on_finished;
};

// One session on local devices. Any thread may call it. Install, Instantiate, Release and Launch
// wait for each other; Instantiate and Release also wait until every step in flight has finished.
//
// Instances share input buffers, arenas and page tables, which grow while instances live:
// instantiate the largest program first, else the smaller ones are prepared again. Every launched
// step must be awaited, failed and cancelled ones too.
class LocalProgramHost final : public ProgramHost {
 public:
  // Errors: INVALID_ARGUMENT for no or too many devices; those of OpenBackend.
  static absl::StatusOr<std::unique_ptr<LocalProgramHost>> Create(LocalProgramHostOptions options);
  // Cancels what is in flight and joins the threads.
  ~LocalProgramHost() override;

  absl::StatusOr<ProgramId> Install(Program program) override;
  absl::StatusOr<InstanceId> Instantiate(ProgramId program,
                                         absl::Span<const SlotBinding> bindings) override;
  absl::Status Release(InstanceId instance) override;
  absl::Status Launch(InstanceId instance, const StepInput& input) override;
  absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline) override;
  absl::Status Cancel(int64_t step) override;

  // Call before freeing a bound buffer: waits for the steps in flight and releases every instance
  // that binds it.
  void InvalidateBuffer(const Buffer* buffer);

  // As the destructor does first: for owners whose on_finished uses this host. Only destruction may
  // follow.
  void Stop();

  HostCounters counters() override;

 private:
  using InstanceMap = absl::flat_hash_map<InstanceId, std::unique_ptr<ProgramInstance>>;

  explicit LocalProgramHost(LocalProgramHostOptions options);
  // Queues the step; call Report of the executor with the result.
  absl::StatusOr<StepEnds> Queue(InstanceId instance, const StepInput& input);
  absl::Status CheckStepInput(const ProgramInstance& instance, const StepInput& input) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillStep(const StepInput& input, Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Prepares the instances again whose memory was replaced; those that fail become unusable.
  absl::StatusOr<std::unique_ptr<ProgramInstance>> MakeInstance(
      ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeIfUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PrepareMovedAgain(const std::vector<std::string>& replaced)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LocalProgramHostOptions options_;
  Mutex mutex_;  // of everything but the executor, which has its own
  ProgramStore programs_ ABSL_GUARDED_BY(mutex_);
  SessionMemory memory_;  // changes only while all devices are idle
  std::unique_ptr<StepExecutor> executor_;
  int64_t next_instance_ ABSL_GUARDED_BY(mutex_) = 1;
  InstanceMap instances_ ABSL_GUARDED_BY(mutex_);
  HostCounters counters_ ABSL_GUARDED_BY(mutex_);  // but those of steps
  int64_t last_edge_step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
