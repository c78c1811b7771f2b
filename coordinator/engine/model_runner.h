// Runs batches of tokens through a model on placed devices: buckets of graphs, each built, planned
// and instantiated once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/engine/runner_options.h"
#include "coordinator/engine/step_inputs.h"
#include "coordinator/engine/step_plan.h"
#include "coordinator/engine/step_rows.h"
#include "coordinator/engine/token_times.h"
#include "coordinator/kv_cache/page_tables.h"
#include "coordinator/models/model.h"
#include "coordinator/sampling/candidate_row.h"
#include "coordinator/scheduler/execution_plan.h"
#include "coordinator/weights/weight_loader.h"

namespace weft {

// How often the runner did what a steady state must not do.
struct RunnerCounters {
  int64_t steps = 0;
  int64_t graphs_built = 0;       // built and planned: once per bucket
  int64_t graphs_reused = 0;      // steps that found their bucket
  int64_t logits_fetched = 0;     // rows that were computed again for all their logits
  int64_t replans = 0;            // memory that prepared graphs knew was replaced after the reserve
  std::string replan_reason;      // of the last
  int64_t arena_bytes = 0;        // of all devices, largest planned
  int64_t arena_lower_bound = 0;  // of that plan
  double load_seconds = 0;        // from the first memory taken until steps could be launched
  double weights_seconds = 0;     // of these: until all weights were there
};

// Memory that a runner takes, in bytes.
struct RunnerMemory {
  int64_t weights = 0;
  int64_t cache = 0;
};

class ModelRunner {
 public:
  // The processes of `group` run programs on `placed.devices`: a group of one on all, by the same
  // positions; else each on those of its host. Everything passed by reference outlives the runner,
  // as do the devices. Errors: INVALID_ARGUMENT for options that the model
  // cannot have, RESOURCE_EXHAUSTED with the bytes asked for and what to lower, UNIMPLEMENTED for
  // an op or type that no device can run.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model& model,
                                                             PlacedDevices placed,
                                                             ProcessGroup& group,
                                                             const Clock& clock,
                                                             const RunnerOptions& options);
  // One process.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model& model,
                                                             PlacedDevices placed,
                                                             ProgramHost& host, const Clock& clock,
                                                             const RunnerOptions& options);
  // Everything on one device.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model& model, Device& device,
                                                             ProgramHost& host, const Clock& clock,
                                                             const RunnerOptions& options);

  // Runs up to `ubatch` tokens. Returns the logits of those that want them, [n_vocab] each, in
  // batch order. Errors: OUT_OF_RANGE for a token id or position beyond the vocabulary or context;
  // RESOURCE_EXHAUSTED if the KV cache is full; FAILED_PRECONDITION for an unexpected re-plan where
  // the options forbid it; else whatever the devices report. After an error the sequences are as
  // before the call.
  absl::StatusOr<std::vector<float>> Step(absl::Span<const BatchToken> batch);

  // Step in two halves, so that several are under way: up to max_in_flight() are launched and not
  // yet collected, in order. After an error of either nothing is in flight, and the sequences are
  // as before the step that failed.
  absl::Status Launch(absl::Span<const BatchToken> batch);
  absl::StatusOr<std::vector<float>> Collect();
  // Launch, but each output row returns options().candidates candidates, with the logits of the ids
  // in its row of `changed`, which has a row for each token that is an output.
  absl::Status LaunchForCandidates(absl::Span<const BatchToken> batch,
                                   absl::Span<const std::vector<int32_t>> changed);
  absl::StatusOr<std::vector<CandidateRow>> CollectCandidates();
  // Launch, but each output row returns the hidden state behind the last norm, [n_embd]; Collect
  // takes them.
  absl::Status LaunchForHidden(absl::Span<const BatchToken> batch);
  // All logits of a sequence's last token, where candidates do not tell: computes the token again,
  // to the same bits. Counted.
  absl::StatusOr<std::vector<float>> FetchLogits(const BatchToken& last);
  // Learns where the time of steps goes, until another is set; null: nobody asks.
  void set_timer(TokenTimer* timer) { timer_ = timer; }
  int64_t in_flight() const { return static_cast<int64_t>(in_flight_.size()); }
  // More than one where steps follow each other through several devices or processes.
  int64_t max_in_flight() const {
    return plan_options_.pipeline || group_.size() > 1 ? kMaxStepsInFlight : 1;
  }

  // Forgets a sequence's positions from `length` on, or from a little before where the page of the
  // cut is shared; returns how many are left. Drops the steps in flight if the sequence is in one.
  int64_t Truncate(int32_t sequence, int64_t length);

  // The empty sequence begins with `tokens`: positions that the cache holds already, never all.
  int64_t Adopt(int32_t sequence, absl::Span<const int32_t> tokens);
  // Lets others adopt what the sequence holds: `tokens` at its first positions, none of which will
  // be forgotten by itself. No step in flight computes one of them.
  void Publish(int32_t sequence, absl::Span<const int32_t> tokens);
  const PageTables& pages() const { return tables_; }
  int64_t page_count() const { return pages_ - 1; }

  const Model& model() const { return model_; }
  const RunnerOptions& options() const { return options_; }
  const RunnerCounters& counters() const { return counters_; }
  const RunnerMemory& memory() const { return memory_; }
  const PlacedDevices& placed() const { return placed_; }
  int64_t n_vocab() const { return model_.hyperparameters().n_vocab; }

 private:
  struct Bucket {
    StepShape shape;
    InstanceId instance{};
    int64_t flops = 0;
    std::shared_ptr<const std::vector<RankOutput>> outputs;  // as StepPlan
  };
  struct InFlight {
    int64_t step = 0;
    int64_t outputs = 0;
    StepShape shape;  // of the bucket
    int64_t flops = 0;
    std::shared_ptr<const std::vector<RankOutput>> rank_outputs;
    std::vector<std::vector<int32_t>> changed;                // of each output row
    std::vector<std::pair<int32_t, int64_t>> lengths_before;  // of the sequences that grew
  };

  ModelRunner(const Model& model, PlacedDevices placed, ProcessGroup& group, const Clock& clock,
              const RunnerOptions& options);
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Start(std::unique_ptr<ModelRunner> runner);
  absl::Status AllocateCacheMemory();
  absl::Status LoadWeights();
  // Plans and instantiates the largest prefill and the decode step.
  absl::Status ReserveBuckets();
  absl::Status PlanBuckets();
  absl::Status PlanAllBuckets();
  absl::StatusOr<StepPlan> Compile(const Graph& graph, int64_t tokens);
  // `shape` is what the step needs; the bucket's holds it.
  absl::StatusOr<const Bucket*> BucketFor(const StepShape& shape);
  absl::Status CheckReplans();
  GraphShape ShapeOf(const StepShape& shape) const;
  enum class RowKind : uint8_t { kLogits, kCandidates, kHidden };
  absl::Status LaunchStep(absl::Span<const BatchToken> batch, RowKind kind,
                          absl::Span<const std::vector<int32_t>> changed);
  absl::StatusOr<std::pair<InFlight, std::vector<StepRows>>> CollectRows(bool candidates);
  absl::Status LaunchBucket(const Bucket& bucket, absl::Span<const BatchToken> batch,
                            absl::Span<const std::vector<int32_t>> changed);
  // By when what is in flight, and `flops` more, is done for certain.
  Clock::TimePoint DeadlineFor(int64_t flops) const;
  absl::StatusOr<std::vector<StepRows>> AwaitStep(const InFlight& step);
  void Undo(const InFlight& step);
  void DropInFlight();

  const Model& model_;
  const PlacedDevices placed_;
  ProcessGroup& group_;
  std::unique_ptr<ProcessGroup> owned_group_;  // where only a host was given
  const Clock& clock_;
  const RunnerOptions options_;
  PlanOptions plan_options_;
  HeldSlices held_;
  int64_t pages_per_sequence_ = 0;
  int64_t pages_ = 0;
  PageTables tables_;
  std::vector<int64_t> lengths_;  // by sequence
  std::unique_ptr<LoadedWeights> weights_;
  std::vector<std::unique_ptr<Buffer>> caches_;
  std::vector<SlotBinding> bindings_;
  absl::flat_hash_map<StepShape, Bucket> buckets_;
  std::deque<InFlight> in_flight_;
  std::vector<TableUpdate> updates_;  // of page tables, not yet launched
  int64_t next_step_ = 1;
  bool reserving_ = true;              // buckets are made before the first step
  int64_t reserved_replacements_ = 0;  // memory replaced until the reserve was done
  RunnerCounters counters_;
  RunnerMemory memory_;
  TokenTimer* timer_ = nullptr;
};

}  // namespace weft
