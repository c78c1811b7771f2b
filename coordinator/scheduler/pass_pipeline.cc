#include "coordinator/scheduler/pass_pipeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/passes/passes.h"
#include "coordinator/scheduler/plan_verifier.h"

namespace weft {

PassPipeline::PassPipeline() {
  passes_.push_back(MakeAssignPinnedPass());
  passes_.push_back(MakeExpandPass());
  passes_.push_back(MakeUpgradeOrGuessPass());
  passes_.push_back(MakeInheritPass());
  passes_.push_back(MakeCutPass());
}

absl::Status PassPipeline::CheckSkips(const PipelineOptions& options) const {
  for (const std::string& name : options.skip) {
    const auto named = [&](const auto& pass) { return pass->name() == name; };
    const auto found = std::find_if(passes_.begin(), passes_.end(), named);
    if (found == passes_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no pass '", name, "' to skip"));
    }
    if (passes_.end() - found <= 2) {
      return absl::InvalidArgumentError(absl::StrCat("no plan without the pass '", name, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PassRecord>> PassPipeline::Run(const PlanContext& context, Plan& plan,
                                                          const PipelineOptions& options) const {
  RETURN_IF_ERROR(CheckSkips(options));
  plan = Plan{};
  plan.assignments.resize(context.graph().nodes().size());
  std::vector<PassRecord> records;
  for (const std::unique_ptr<Pass>& pass : passes_) {
    PassRecord record;
    record.name = pass->name();
    record.skipped =
        std::find(options.skip.begin(), options.skip.end(), pass->name()) != options.skip.end();
    if (!record.skipped) {
      const Clock::TimePoint start = options.clock ? options.clock->Now() : Clock::TimePoint{};
      ASSIGN_OR_RETURN(record.changed, pass->Run(context, plan));
      if (options.clock) record.seconds = SecondsSince(*options.clock, start);
      if (options.verify) {
        absl::Status status = VerifyAssignments(context, plan);
        if (status.ok() && pass == passes_.back()) status = VerifyCut(context, plan);
        if (!status.ok()) {
          return absl::InternalError(
              absl::StrCat("after pass ", AbslView(pass->name()), ": ", status.message()));
        }
      }
      if (options.after_pass) options.after_pass(record, plan);
    }
    records.push_back(record);
  }
  return records;
}

}  // namespace weft
