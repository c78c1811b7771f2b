// Runs batches of tokens through a model on one device: buckets of graphs, each built, planned and
// instantiated once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "coordinator/kv_cache/page_tables.h"
#include "coordinator/models/model.h"
#include "coordinator/weights/weight_loader.h"

namespace weft {

struct RunnerOptions {
  int64_t context = 4096;  // most positions of a sequence
  int64_t sequences = 1;   // at the same time
  int64_t ubatch = 512;    // most tokens of a step
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
  LoadProgress load_progress;  // may be empty
};

// One token of a batch.
struct BatchToken {
  int32_t token = 0;
  int64_t position = 0;  // in its sequence; follows the position before it
  int32_t sequence = 0;  // slot, below RunnerOptions::sequences
  bool output = false;   // wants logits
};

// How often the runner did what a steady state must not do.
struct RunnerCounters {
  int64_t steps = 0;
  int64_t graphs_built = 0;
  int64_t arena_bytes = 0;        // largest arena planned
  int64_t arena_lower_bound = 0;  // of that plan
};

// Memory that a runner takes, in bytes.
struct RunnerMemory {
  int64_t weights = 0;
  int64_t cache = 0;
};

class ModelRunner {
 public:
  // `host` runs programs on `device` alone. Everything passed by reference outlives the runner.
  // Errors: INVALID_ARGUMENT for options that the model cannot have, RESOURCE_EXHAUSTED with the
  // bytes asked for and what to lower, UNIMPLEMENTED for an op or type that the device cannot run.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model& model, Device& device,
                                                             ProgramHost& host, const Clock& clock,
                                                             const RunnerOptions& options);

  // Runs up to `ubatch` tokens. Returns the logits of those that want them, [n_vocab] each, in
  // batch order. Errors: OUT_OF_RANGE for a token id or position beyond the vocabulary or context;
  // RESOURCE_EXHAUSTED if the KV cache is full; else whatever the device reports. After an error
  // the sequences are as before the call.
  absl::StatusOr<std::vector<float>> Step(absl::Span<const BatchToken> batch);

  // Forgets a sequence's positions from `length` on.
  void Truncate(int32_t sequence, int64_t length);

  const Model& model() const { return model_; }
  const RunnerOptions& options() const { return options_; }
  const RunnerCounters& counters() const { return counters_; }
  const RunnerMemory& memory() const { return memory_; }
  int64_t n_vocab() const { return model_.hyperparameters().n_vocab; }

 private:
  struct Bucket {
    int64_t tokens = 0;
    int64_t outputs = 0;
    InstanceId instance{};
    int64_t flops = 0;
  };

  ModelRunner(const Model& model, Device& device, ProgramHost& host, const Clock& clock,
              const RunnerOptions& options);
  absl::Status AllocateCaches();
  absl::Status CheckBatch(absl::Span<const BatchToken> batch) const;
  absl::StatusOr<Program> Compile(const Graph& graph);
  absl::StatusOr<const Bucket*> BucketFor(int64_t tokens, int64_t outputs);
  GraphShape ShapeOf(int64_t tokens, int64_t outputs) const;
  absl::StatusOr<std::vector<float>> RunBucket(const Bucket& bucket,
                                               absl::Span<const BatchToken> batch);

  const Model& model_;
  Device& device_;
  ProgramHost& host_;
  const Clock& clock_;
  RunnerOptions options_;
  int64_t pages_per_sequence_ = 0;
  int64_t pages_ = 0;
  PageTables tables_;
  std::vector<int64_t> lengths_;  // by sequence
  std::unique_ptr<LoadedWeights> weights_;
  std::vector<std::unique_ptr<Buffer>> caches_;
  std::vector<SlotBinding> bindings_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, Bucket> buckets_;
  int64_t next_step_ = 1;
  RunnerCounters counters_;
  RunnerMemory memory_;
};

}  // namespace weft
