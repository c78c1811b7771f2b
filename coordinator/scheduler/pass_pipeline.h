// Runs the five passes in order: times them, skips some by name, shows the plan after each, and
// verifies it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "coordinator/scheduler/pass.h"

namespace weft {

struct PassRecord {
  std::string_view name;
  bool changed = false;
  bool skipped = false;
  double seconds = 0;  // 0 without a clock
};

struct PipelineOptions {
  std::vector<std::string> skip;  // names of passes; inherit and cut cannot be left out
  // Called after each pass that ran.
  std::function<void(const PassRecord& record, const Plan& plan)> after_pass;
  bool verify = true;
  const Clock* clock = nullptr;  // may be null
};

class PassPipeline {
 public:
  PassPipeline();
  absl::Span<const std::unique_ptr<Pass>> passes() const { return passes_; }

  // Places the whole graph. Errors: INVALID_ARGUMENT for an unknown name to skip; those of the
  // passes; INTERNAL from verification, naming the pass.
  absl::StatusOr<std::vector<PassRecord>> Run(const PlanContext& context, Plan& plan,
                                              const PipelineOptions& options) const;

 private:
  absl::Status CheckSkips(const PipelineOptions& options) const;

  std::vector<std::unique_ptr<Pass>> passes_;
};

}  // namespace weft
