#include "coordinator/cli/local_session.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/program/local_program_host.h"
#include "coordinator/cli/progress_bar.h"

namespace weft {
namespace {

constexpr int32_t kMaxThreads = 1024;

absl::Status Annotate(const absl::Status& status, const std::string& path) {
  if (status.ok() || status.message().find(path) != absl::string_view::npos) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<DType> ParseCacheType(const char* flag, const std::string& name) {
  const std::optional<DType> dtype = DTypeFromName(name);
  if (dtype) return *dtype;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": unknown type '", name, "'; use f32, f16 or q8_0"));
}

}  // namespace

int32_t AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

LocalSession::~LocalSession() = default;

absl::Status LocalSession::OpenDevice(const ModelFlags& flags) {
  if (flags.threads < 0 || flags.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("-t: ", flags.threads, " threads, want 1 to ", kMaxThreads));
  }
  threads_ = flags.threads > 0 ? flags.threads : AvailableProcessors();
  CpuDeviceOptions options;
  options.name = "local.cpu0";
  options.threads = threads_;
  options.instruction_set = BestInstructionSet();
  if (!flags.instruction_set.empty()) {
    ASSIGN_OR_RETURN(options.instruction_set, ParseInstructionSet(flags.instruction_set));
  }
  ASSIGN_OR_RETURN(device_, CpuDevice::Create(options));
  LocalProgramHostOptions host_options;
  host_options.devices = {device_.get()};
  host_options.logger = &logger_;
  ASSIGN_OR_RETURN(host_, LocalProgramHost::Create(host_options));
  return absl::OkStatus();
}

namespace {

// A tensor that no graph uses may mean that the model is not what its architecture's name says.
void WarnOfUnused(const Model& model, Logger& logger) {
  std::vector<std::string> unused = model.weight_table().Unused();
  if (unused.empty()) return;
  const size_t count = unused.size();
  if (count > 3) unused.resize(3);
  logger.Warning(
      absl::StrCat("tensors of the file that are not used: ", absl::StrJoin(unused, ", "),
                   count > 3 ? ", ... " : "", count > 3 ? absl::StrCat("(", count, ")") : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalSession>> LocalSession::Open(const ModelFlags& flags,
                                                                 int64_t default_context,
                                                                 int64_t sequences,
                                                                 const Clock& clock,
                                                                 Logger& logger) {
  std::unique_ptr<LocalSession> session(new LocalSession(clock, logger));
  RunnerOptions options;
  ASSIGN_OR_RETURN(options.key_type, ParseCacheType("-ctk", flags.key_type));
  ASSIGN_OR_RETURN(options.value_type, ParseCacheType("-ctv", flags.value_type));
  ASSIGN_OR_RETURN(session->file_, GgufFile::Open(flags.model));
  absl::StatusOr<std::unique_ptr<Model>> model = Model::Create(*session->file_);
  if (!model.ok()) return Annotate(model.status(), flags.model);
  session->model_ = *std::move(model);
  WarnOfUnused(*session->model_, logger);
  RETURN_IF_ERROR(session->OpenDevice(flags));

  const int64_t trained = session->model_->hyperparameters().context_length;
  options.context = flags.context > 0    ? flags.context
                    : flags.context == 0 ? trained
                                         : std::min(default_context, trained);
  if (flags.context < -1) {
    return absl::InvalidArgumentError(absl::StrCat("-c: context of ", flags.context, " tokens"));
  }
  if (options.context > trained && options.context <= kMaxContext) {
    logger.Warning(absl::StrCat("context of ", options.context, " tokens is beyond the ", trained,
                                " that the model was trained for"));
  }
  options.ubatch = flags.ubatch;
  options.sequences = sequences;
  ProgressBar bar(clock, absl::StrCat("loading ", flags.model), "B");
  options.load_progress = [&bar](int64_t done, int64_t total) {
    bar.Update(done, total);
    return true;
  };
  absl::StatusOr<std::unique_ptr<ModelRunner>> runner =
      ModelRunner::Create(*session->model_, *session->device_, *session->host_, clock, options);
  bar.Finish();
  RETURN_IF_ERROR(runner.status());
  session->runner_ = *std::move(runner);
  return session;
}

absl::StatusOr<const Tokenizer*> LocalSession::tokenizer() {
  if (tokenizer_ == nullptr) {
    absl::StatusOr<std::unique_ptr<Tokenizer>> made = Tokenizer::Create(file_->metadata());
    if (!made.ok()) return Annotate(made.status(), file_->file(0).path());
    tokenizer_ = *std::move(made);
    for (const std::string& warning : tokenizer_->warnings()) logger_.Warning(warning);
    if (tokenizer_->vocabulary_size() > runner_->n_vocab()) {
      return absl::InvalidArgumentError(absl::StrCat(file_->file(0).path(), ": the tokenizer has ",
                                                     tokenizer_->vocabulary_size(),
                                                     " tokens, the model ", runner_->n_vocab()));
    }
  }
  return tokenizer_.get();
}

}  // namespace weft
