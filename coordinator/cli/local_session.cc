#include "coordinator/cli/local_session.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/program/local_program_host.h"
#include "coordinator/cli/progress_bar.h"
#include "coordinator/cli/rank_link_probe.h"
#include "coordinator/engine/overlap.h"

namespace weft {
namespace {

absl::Status Annotate(const absl::Status& status, const std::string& path) {
  if (status.ok() || status.message().find(path) != absl::string_view::npos) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

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

absl::StatusOr<DType> ParseCacheType(const char* flag, const std::string& name) {
  const std::optional<DType> dtype = DTypeFromName(name);
  if (dtype) return *dtype;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": unknown type '", name, "'; use f32, f16 or q8_0"));
}

absl::StatusOr<int64_t> ResolveContext(int64_t flag, int64_t default_context, int64_t trained) {
  if (flag < -1) {
    return absl::InvalidArgumentError(absl::StrCat("-c: context of ", flag, " tokens"));
  }
  return flag > 0 ? flag : flag == 0 ? trained : std::min(default_context, trained);
}

LocalSession::~LocalSession() = default;

absl::Status LocalSession::OpenDevices(const ModelFlags& flags) {
  LocalDeviceOptions options;
  options.threads = flags.threads;
  options.instruction_set = flags.instruction_set;
  options.blas = request_.blas;
  if (flags.fleet.any()) {
    ASSIGN_OR_RETURN(const FleetOptions fleet,
                     ParseFleetFlags(flags.fleet, flags.threads, flags.instruction_set, logger_));
    ASSIGN_OR_RETURN(fleet_, Fleet::Open(fleet, logger_));
    placed_.devices = fleet_->devices();
  }
  ASSIGN_OR_RETURN(local_, OpenLocalDevices(options));
  placed_.devices.insert(placed_.devices.end(), local_.devices.begin(), local_.devices.end());
  const absl::Status status = PlaceOnDevices(flags);
  RETURN_IF_ERROR(fleet_ == nullptr ? status : fleet_->Explain(status));
  return OpenProcesses();
}

absl::Status LocalSession::PlaceOnDevices(const ModelFlags& flags) {
  ASSIGN_OR_RETURN(rank_groups_, GroupDevices(placed_, request_.placement));
  RETURN_IF_ERROR(ChooseReductions());
  ASSIGN_OR_RETURN(placed_.placement, PlaceModel(*model_, placed_.devices, request_.placement));
  for (const PlacementRemark& remark : placed_.placement.remarks) logger_.Warning(remark.text);
  ASSIGN_OR_RETURN(placed_.batch_ranges,
                   ResolveDeviceBatches(request_.device_batches, placed_.devices));
  const bool may_idle = flags.fleet.allow_idle || flags.fleet.searched();
  return fleet_ == nullptr || may_idle ? absl::OkStatus() : CheckIdleWorkers();
}

// How the ranks add up, and whether they compute meanwhile.
absl::Status LocalSession::ChooseReductions() {
  PlanOptions& plan = request_.plan;
  const bool asks_links =
      plan.all_reduce == AllReducePolicy::kAuto || plan.overlap == OverlapPolicy::kAuto;
  std::vector<HostLink> links;
  if (fleet_ != nullptr && asks_links) {
    ASSIGN_OR_RETURN(links, ProbeRankLinks(*fleet_, placed_.devices, logger_));
    placed_.rank_links = RankLinks(placed_.devices, links);
  }
  const OverlapPolicy asked = plan.overlap;
  plan.overlap = ResolveOverlap(asked, placed_.devices, links);
  const std::string old = fleet_ == nullptr ? "" : fleet_->WorkerWithoutDetached();
  if (old.empty()) return absl::OkStatus();
  plan.overlap = OverlapPolicy::kOff;
  if (asked == OverlapPolicy::kOn) {
    logger_.Warning(StdView(absl::StrCat("--overlap: ", old, " is too old for it")));
  }
  return absl::OkStatus();
}

absl::Status LocalSession::CheckIdleWorkers() const {
  absl::flat_hash_set<std::string> used;
  for (const int32_t device : placed_.placement.weights) {
    used.insert(placed_.devices[device]->host());
  }
  // A rank counts as used, whatever its slices.
  for (const std::unique_ptr<MetaDevice>& group : rank_groups_) {
    if (!used.contains(group->host())) continue;
    for (const Device* rank : group->ranks()) used.insert(rank->host());
  }
  for (int32_t i = 0; i < fleet_->worker_count(); ++i) {
    const RemoteWorker& worker = fleet_->worker(i);
    if (used.contains(worker.name())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(worker.label(), " would have nothing to do: it gets none of the ",
                     model_->hyperparameters().n_layer,
                     " layers; leave it out, change --tensor-split, or pass --allow-idle"));
  }
  return absl::OkStatus();
}

absl::Status LocalSession::OpenProcesses() {
  LocalProgramHostOptions options;
  options.devices = local_.devices;
  options.logger = &logger_;
  if (fleet_ != nullptr) {
    options.edges = &fleet_->edges();
    options.collectives = &fleet_->collectives();
  }
  ASSIGN_OR_RETURN(host_, LocalProgramHost::Create(options));
  if (fleet_ == nullptr) {
    group_ = std::make_unique<ProcessGroup>(*host_);
    return absl::OkStatus();
  }
  std::vector<GroupMember> members;
  members.reserve(static_cast<size_t>(fleet_->worker_count()) + 1);
  for (int32_t i = 0; i < fleet_->worker_count(); ++i) {
    members.push_back({fleet_->hosts()[i], &fleet_->link().host(i), true});
  }
  members.push_back({fleet_->hosts().back(), host_.get(), false});
  group_ = std::make_unique<ProcessGroup>(std::move(members));
  return absl::OkStatus();
}

absl::StatusOr<RunnerOptions> LocalSession::MakeOptions(const ModelFlags& flags,
                                                        int64_t default_context) const {
  RunnerOptions options;
  ASSIGN_OR_RETURN(options.key_type, ParseCacheType("-ctk", flags.key_type));
  ASSIGN_OR_RETURN(options.value_type, ParseCacheType("-ctv", flags.value_type));
  const int64_t trained = model_->hyperparameters().context_length;
  ASSIGN_OR_RETURN(options.context, ResolveContext(flags.context, default_context, trained));
  if (options.context > trained && options.context <= kMaxContext) {
    logger_.Warning(absl::StrCat("context of ", options.context, " tokens is beyond the ", trained,
                                 " that the model was trained for"));
  }
  options.ubatch = flags.ubatch;
  options.forbid_replans = flags.forbid_replans;
  options.logger = &logger_;
  return options;
}

absl::StatusOr<std::unique_ptr<LocalSession>> LocalSession::Open(const ModelFlags& flags,
                                                                 const SessionNeeds& needs,
                                                                 const Clock& clock,
                                                                 Logger& logger) {
  std::unique_ptr<LocalSession> session(new LocalSession(clock, logger));
  ASSIGN_OR_RETURN(session->request_, ParsePlacementFlags(flags.placement));
  ASSIGN_OR_RETURN(session->file_, GgufFile::Open(flags.model));
  absl::StatusOr<std::unique_ptr<Model>> model = Model::Create(*session->file_);
  if (!model.ok()) return Annotate(model.status(), flags.model);
  session->model_ = *std::move(model);
  WarnOfUnused(*session->model_, logger);
  ASSIGN_OR_RETURN(RunnerOptions options, session->MakeOptions(flags, needs.context));
  session->request_.placement.key_type = options.key_type;
  session->request_.placement.value_type = options.value_type;
  options.sequences = needs.sequences;
  options.cache_tokens = needs.cache_tokens > 0
                             ? needs.cache_tokens
                             : options.context * std::min(needs.sequences, needs.cache_contexts);
  options.prepare_all = needs.prepare_all;
  options.hidden = needs.hidden;
  options.reserve_outputs = needs.all_outputs ? options.ubatch : needs.sequences;
  if (needs.sampler != nullptr) {
    const int64_t n_vocab = session->model_->hyperparameters().n_vocab;
    options.candidates = CandidatesFor(*needs.sampler, n_vocab);
    options.changed = MostChangedIds(*needs.sampler, options.context, n_vocab);
  }
  RETURN_IF_ERROR(session->OpenDevices(flags));
  options.plan = session->request_.plan;

  if (session->fleet_ != nullptr) options.foreign_weights = &session->fleet_->weights();
  ProgressBar bar(clock, absl::StrCat("loading ", flags.model), "B");
  options.load_progress = [&bar](int64_t done, int64_t total) {
    bar.Update(done, total);
    return true;
  };
  absl::StatusOr<std::unique_ptr<ModelRunner>> runner =
      ModelRunner::Create(*session->model_, session->placed_, *session->group_, clock, options);
  bar.Finish();
  if (session->fleet_ != nullptr) {
    RETURN_IF_ERROR(session->fleet_->Explain(runner.status()));
  }
  RETURN_IF_ERROR(runner.status());
  session->runner_ = *std::move(runner);
  return session;
}

int64_t LocalSession::stages() const {
  const std::vector<int32_t>& layers = placed_.placement.layer_devices;
  absl::flat_hash_set<int32_t> devices(layers.begin(), layers.end());
  return static_cast<int64_t>(devices.size());
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
