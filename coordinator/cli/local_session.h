// Everything that a command needs to run a model, here or over workers: file, model, devices,
// tokenizer, runner, built from flags.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/device/device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/program_host.h"
#include "coordinator/cli/fleet_flags.h"
#include "coordinator/cli/local_devices.h"
#include "coordinator/cli/placement_flags.h"
#include "coordinator/cluster/fleet.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/engine/rank_groups.h"
#include "coordinator/models/model.h"
#include "coordinator/sampling/sampler.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

struct ModelFlags {
  std::string model;
  int64_t context = -1;  // -1: the command's default; 0: as the model was trained
  int64_t ubatch = 512;
  int32_t threads = 0;  // 0: DefaultThreads
  std::string key_type = "f16";
  std::string value_type = "f16";
  std::string instruction_set;  // empty: the best
  PlacementFlags placement;
  FleetFlags fleet;
  bool forbid_replans = false;
};

// The type that -ctk or -ctv names. Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<DType> ParseCacheType(const char* flag, const std::string& name);

// Positions of a sequence that -c asks for: `flag` -1 is the command's default, lowered to what the
// model was trained for, and 0 that. Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<int64_t> ResolveContext(int64_t flag, int64_t default_context, int64_t trained);

// What a command asks of its session.
struct SessionNeeds {
  int64_t context = 4096;    // where the flags do not say
  int64_t sequences = 1;     // at the same time
  int64_t cache_tokens = 0;  // as RunnerOptions
  // Where that is 0: room for so many whole contexts, but no more than there are sequences.
  int64_t cache_contexts = 0;
  bool all_outputs = false;  // logits of all tokens of a step; else of each sequence's last
  bool prepare_all = false;  // as RunnerOptions
  bool hidden = false;       // as RunnerOptions
  const SamplerOptions* sampler = nullptr;  // steps may return the candidates that it needs
};

class LocalSession {
 public:
  // Opens the file, checks it, loads the weights (with a progress bar). The context is lowered to
  // what the model was trained for. Errors name file, field and what to do.
  static absl::StatusOr<std::unique_ptr<LocalSession>> Open(const ModelFlags& flags,
                                                            const SessionNeeds& needs,
                                                            const Clock& clock, Logger& logger);
  ~LocalSession();

  const GgufFile& file() const { return *file_; }
  const Model& model() const { return *model_; }
  ModelRunner& runner() { return *runner_; }
  // Layers lie on so many devices (or groups of ranks), one part after the other.
  int64_t stages() const;
  // The processes that run it. `fleet` is null where this is the only one.
  const ProcessGroup& group() const { return *group_; }
  Fleet* fleet() { return fleet_.get(); }
  // The CPU of this machine.
  Device& cpu() { return *local_.devices.back(); }
  const Clock& clock() const { return clock_; }
  int32_t threads() const { return local_.threads; }
  // What the flags ask of the placement.
  const PlacementOptions& placement_options() const { return request_.placement; }

  // Made on first use: commands that work with ids alone need none. Errors: as Tokenizer::Create.
  absl::StatusOr<const Tokenizer*> tokenizer();

 private:
  LocalSession(const Clock& clock, Logger& logger) : clock_(clock), logger_(logger) {}
  absl::Status OpenDevices(const ModelFlags& flags);
  absl::Status PlaceOnDevices(const ModelFlags& flags);
  absl::Status OpenProcesses();
  // Errors: INVALID_ARGUMENT naming a worker that the placement leaves without work.
  absl::Status ChooseReductions();
  absl::Status CheckIdleWorkers() const;
  absl::StatusOr<RunnerOptions> MakeOptions(const ModelFlags& flags, int64_t default_context) const;

  const Clock& clock_;
  Logger& logger_;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  PlacementRequest request_;
  LocalDevices local_;
  std::unique_ptr<Fleet> fleet_;
  std::vector<std::unique_ptr<MetaDevice>> rank_groups_;  // of --split-mode tensor
  PlacedDevices placed_;
  std::unique_ptr<ProgramHost> host_;  // of this process
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace weft
