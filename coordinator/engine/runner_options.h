// What a runner is asked for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/tensor/dtype.h"
#include "coordinator/models/hyperparameters.h"
#include "coordinator/models/model.h"
#include "coordinator/scheduler/plan_input.h"
#include "coordinator/weights/weight_loader.h"

namespace weft {

// Pages of a larger cache could not even be counted in memory.
inline constexpr int64_t kMaxCacheTokens = 4 * kMaxContext;

struct RunnerOptions {
  int64_t context = 4096;  // most positions of a sequence
  int64_t sequences = 1;   // at the same time
  // That the KV cache holds, of all sequences together; 0: all of them at their longest.
  int64_t cache_tokens = 0;
  int64_t ubatch = 512;  // most tokens of a step
  // Tokens of the largest step that get logits; more work, but lead to another plan.
  int64_t reserve_outputs = 1;
  // Plans the steps of all sizes at once, so that none comes as a surprise while many are served.
  bool prepare_all = false;
  // Steps may return candidates (ModelRunner::LaunchForCandidates): the most of a row, and the most
  // ids whose logits the sampler changes. With 0 all steps return all logits.
  int64_t candidates = 0;
  int64_t changed = 0;
  bool hidden = false;  // steps that return hidden states are planned for, too
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
  PlanOptions plan;      // how graphs are scheduled
  bool pipeline = true;  // steps follow each other through several devices, where that is possible
  // An unexpected re-plan is an error with its reason, for tests and for people who look for one.
  bool forbid_replans = false;
  LoadProgress load_progress;  // may be empty
  // Loads what lies on devices of other processes; null where there are none. Outlives the runner.
  ForeignWeights* foreign_weights = nullptr;
  Logger* logger = nullptr;  // may be null
};

// Errors: INVALID_ARGUMENT naming the flag.
absl::Status CheckRunnerOptions(const Model& model, const RunnerOptions& options);

}  // namespace weft
