#include "coordinator/engine/model_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/engine/cache_memory.h"
#include "coordinator/engine/overlap.h"

namespace weft {
namespace {

// A step may take this long beyond a second per gigaflop: far more than any machine needs, so only
// a hang runs into it.
constexpr double kDeadlineFlopsPerSecond = 1e8;
constexpr std::chrono::seconds kDeadlineBase{60};

// The reserve is a little larger than what it was planned for: the order in which lifetimes are
// packed may serve the largest step better than one with fewer tokens or outputs.
constexpr int64_t kMarginShare = 16;
constexpr int64_t kLeastMargin = int64_t{64} << 10;

void AddMargin(FleetProgram& program) {
  for (ProcessProgram& process : program.processes) {
    for (Slot& slot : process.program.slots) {
      if (slot.kind != SlotKind::kArena && slot.kind != SlotKind::kCrossing) continue;
      const int64_t margin = std::max(slot.bytes / kMarginShare, kLeastMargin);
      slot.bytes = SaturatingAdd(slot.bytes, margin / kTensorAlignment * kTensorAlignment);
    }
  }
}

}  // namespace

ModelRunner::ModelRunner(const Model& model, PlacedDevices placed, ProcessGroup& group,
                         const Clock& clock, const RunnerOptions& options)
    : model_(model),
      placed_(std::move(placed)),
      group_(group),
      clock_(clock),
      options_(options),
      plan_options_(options.plan),
      pages_per_sequence_(CeilDivide(options.context, kPageTokens)),
      pages_(1 + (options.cache_tokens > 0 ? CeilDivide(options.cache_tokens, kPageTokens)
                                           : pages_per_sequence_ * options.sequences)),
      tables_(static_cast<int32_t>(options.sequences), static_cast<int32_t>(pages_per_sequence_),
              static_cast<int32_t>(pages_)),
      lengths_(options.sequences, 0) {
  plan_options_.pipeline = options.pipeline && placed_.devices.size() > 1;
}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model, Device& device,
                                                                 ProgramHost& host,
                                                                 const Clock& clock,
                                                                 const RunnerOptions& options) {
  return Create(model, PlaceOnOneDevice(model, device), host, clock, options);
}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model,
                                                                 PlacedDevices placed,
                                                                 ProgramHost& host,
                                                                 const Clock& clock,
                                                                 const RunnerOptions& options) {
  RETURN_IF_ERROR(CheckRunnerOptions(model, options));
  auto group = std::make_unique<ProcessGroup>(host);
  std::unique_ptr<ModelRunner> runner(
      new ModelRunner(model, std::move(placed), *group, clock, options));
  runner->owned_group_ = std::move(group);
  return Start(std::move(runner));
}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model,
                                                                 PlacedDevices placed,
                                                                 ProcessGroup& group,
                                                                 const Clock& clock,
                                                                 const RunnerOptions& options) {
  RETURN_IF_ERROR(CheckRunnerOptions(model, options));
  return Start(std::unique_ptr<ModelRunner>(
      new ModelRunner(model, std::move(placed), group, clock, options)));
}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Start(
    std::unique_ptr<ModelRunner> runner) {
  const RunnerOptions& options = runner->options_;
  if (runner->pages_ > (int64_t{1} << 27)) {
    return absl::InvalidArgumentError(absl::StrCat("context of ", options.context, " for ",
                                                   options.sequences, " sequences is too large"));
  }
  const Clock::TimePoint start = runner->clock_.Now();
  ASSIGN_OR_RETURN(runner->held_, HoldSlices(runner->model_, runner->placed_));
  RETURN_IF_ERROR(runner->AllocateCacheMemory());
  RETURN_IF_ERROR(runner->LoadWeights());
  RETURN_IF_ERROR(runner->ReserveBuckets());
  runner->counters_.load_seconds = SecondsSince(runner->clock_, start);
  return runner;
}

absl::Status ModelRunner::AllocateCacheMemory() {
  ASSIGN_OR_RETURN(CacheMemory memory, AllocateCaches(model_, held_.caches, pages_,
                                                      options_.key_type, options_.value_type));
  memory_.cache = memory.bytes;
  caches_ = std::move(memory.buffers);
  int32_t id = 0;
  for (const std::unique_ptr<Buffer>& buffer : caches_) {
    bindings_.push_back({SlotKind::kCache, id++, buffer.get(), 0});
  }
  return absl::OkStatus();
}

absl::Status ModelRunner::LoadWeights() {
  const Clock::TimePoint start = clock_.Now();
  ASSIGN_OR_RETURN(weights_, LoadedWeights::Load(model_, held_.weights, options_.load_progress,
                                                 options_.foreign_weights));
  counters_.weights_seconds = SecondsSince(clock_, start);
  memory_.weights = weights_->bytes();
  for (const SlotBinding& binding : weights_->bindings()) bindings_.push_back(binding);
  return absl::OkStatus();
}

// The largest step first: what does not fit shows now, and later buckets find their arena in place.
absl::Status ModelRunner::PlanBuckets() {
  const int64_t most = std::min(options_.ubatch, options_.context * options_.sequences);
  const auto reserve = [&](int64_t tokens, int64_t outputs) {
    return BucketFor({tokens, outputs, options_.candidates, options_.changed}).status();
  };
  RETURN_IF_ERROR(reserve(most, std::min(most, options_.reserve_outputs)));
  RETURN_IF_ERROR(reserve(std::min(most, options_.sequences), 1));
  if (options_.hidden) {
    RETURN_IF_ERROR(BucketFor({.tokens = most, .outputs = most, .hidden = true}).status());
  }
  if (options_.prepare_all) return PlanAllBuckets();
  // Where placement depends on the batch, a smaller step may need more of some device.
  for (int64_t tokens = 1; placed_.devices.size() > 1 && tokens < most; tokens *= 2) {
    RETURN_IF_ERROR(reserve(tokens, std::min(tokens, options_.reserve_outputs)));
  }
  return absl::OkStatus();
}

absl::Status ModelRunner::PlanAllBuckets() {
  const int64_t most = std::min(options_.ubatch, options_.context * options_.sequences);
  for (int64_t tokens = 1;; tokens = std::min(2 * tokens, most)) {
    RETURN_IF_ERROR(BucketFor({tokens, 0, 0, 0}).status());
    if (options_.hidden) {
      RETURN_IF_ERROR(BucketFor({.tokens = tokens, .outputs = tokens, .hidden = true}).status());
    }
    const int64_t outputs = std::min({tokens, options_.sequences, options_.reserve_outputs});
    for (int64_t rows = 1;; rows = std::min(2 * rows, outputs)) {
      RETURN_IF_ERROR(BucketFor({tokens, rows, options_.candidates, 0}).status());
      if (rows == outputs) break;
    }
    if (tokens == most) return absl::OkStatus();
  }
}

absl::Status ModelRunner::ReserveBuckets() {
  absl::Status status = PlanBuckets();
  if (absl::IsResourceExhausted(status) && plan_options_.pipeline) {
    if (options_.logger != nullptr) {
      options_.logger->Warning(StdView(
          absl::StrCat("steps do not overlap, their copies do not fit: ", status.message())));
    }
    for (const auto& [key, bucket] : buckets_) RETURN_IF_ERROR(group_.Release(bucket.instance));
    buckets_.clear();
    plan_options_.pipeline = false;
    status = PlanBuckets();
  }
  RETURN_IF_ERROR(status);
  reserving_ = false;
  reserved_replacements_ = group_.counters().memory_replaced;
  return absl::OkStatus();
}

GraphShape ModelRunner::ShapeOf(const StepShape& step) const {
  GraphShape shape;
  shape.tokens = step.tokens;
  shape.outputs = step.outputs;
  shape.candidates = step.candidates;
  shape.changed = step.changed;
  shape.hidden = step.hidden;
  shape.halves = InHalves(plan_options_, held_, step.tokens);
  shape.sequences = options_.sequences;
  shape.pages_per_sequence = pages_per_sequence_;
  shape.pages = pages_;
  shape.context = options_.context;
  shape.key_type = options_.key_type;
  shape.value_type = options_.value_type;
  return shape;
}

absl::StatusOr<StepPlan> ModelRunner::Compile(const Graph& graph, int64_t tokens) {
  ASSIGN_OR_RETURN(StepPlan plan, PlanStep(graph, placed_, held_, group_, tokens, plan_options_));
  if (reserving_ && options_.logger != nullptr) {
    for (const std::string& remark : plan.remarks) options_.logger->Debug(StdView(remark));
  }
  if (plan_options_.pipeline && plan.copies == 1) {
    if (options_.logger != nullptr) {
      options_.logger->Debug(absl::StrCat("no pipelining: ", plan.pipeline_refusal));
    }
    plan_options_.pipeline = false;
  }
  if (plan.arena_bytes > counters_.arena_bytes) {
    counters_.arena_bytes = plan.arena_bytes;
    counters_.arena_lower_bound = plan.arena_lower_bound;
  }
  return plan;
}

absl::StatusOr<const ModelRunner::Bucket*> ModelRunner::BucketFor(const StepShape& shape) {
  Bucket bucket;
  bucket.shape = BucketShape(shape, options_.ubatch);
  const auto found = buckets_.find(bucket.shape);
  if (found != buckets_.end()) {
    ++counters_.graphs_reused;
    return &found->second;
  }

  ASSIGN_OR_RETURN(const ModelGraph graph, model_.BuildGraph(ShapeOf(bucket.shape)));
  ASSIGN_OR_RETURN(StepPlan plan, Compile(graph.graph, bucket.shape.tokens));
  if (reserving_) AddMargin(plan.program);
  ++counters_.graphs_built;
  bucket.flops = GraphFlops(graph.graph);
  ASSIGN_OR_RETURN(const ProgramId program, group_.Install(std::move(plan.program)));
  absl::StatusOr<InstanceId> instance = group_.Instantiate(program, bindings_);
  if (absl::IsResourceExhausted(instance.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory to compute ", bucket.shape.tokens,
                     " tokens at once: ", instance.status().message(), "; lower -ub"));
  }
  RETURN_IF_ERROR(instance.status());
  bucket.instance = *instance;
  bucket.outputs = std::make_shared<std::vector<RankOutput>>(std::move(plan.outputs));
  return &buckets_.emplace(bucket.shape, bucket).first->second;
}

// Memory that was right at the reserve must do for every later step.
absl::Status ModelRunner::CheckReplans() {
  const HostCounters counters = group_.counters();
  const int64_t replans = counters.memory_replaced - reserved_replacements_;
  if (replans == counters_.replans) return absl::OkStatus();
  counters_.replans = replans;
  counters_.replan_reason = counters.last_reason;
  if (!options_.forbid_replans) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("an unexpected re-plan: ", counters_.replan_reason));
}

absl::StatusOr<std::vector<float>> ModelRunner::Step(absl::Span<const BatchToken> batch) {
  DropInFlight();
  RETURN_IF_ERROR(Launch(batch));
  return Collect();
}

absl::Status ModelRunner::Launch(absl::Span<const BatchToken> batch) {
  return LaunchStep(batch, RowKind::kLogits, {});
}

absl::Status ModelRunner::LaunchForCandidates(absl::Span<const BatchToken> batch,
                                              absl::Span<const std::vector<int32_t>> changed) {
  return LaunchStep(batch, RowKind::kCandidates, changed);
}

absl::Status ModelRunner::LaunchForHidden(absl::Span<const BatchToken> batch) {
  return LaunchStep(batch, RowKind::kHidden, {});
}

absl::Status ModelRunner::LaunchStep(absl::Span<const BatchToken> batch, RowKind kind,
                                     absl::Span<const std::vector<int32_t>> changed) {
  const bool candidates = kind == RowKind::kCandidates;
  absl::StatusOr<StepShape> shape =
      ShapeOfStep(batch, candidates ? options_.candidates : 0, options_.changed, changed);
  absl::Status status = CheckBatch(batch, options_, n_vocab(), lengths_);
  status.Update(shape.status());
  if (shape.ok()) shape->hidden = kind == RowKind::kHidden;
  if (candidates && options_.candidates == 0) {
    status.Update(absl::FailedPreconditionError("the runner has no candidates"));
  }
  if (in_flight() >= max_in_flight()) {
    status.Update(absl::FailedPreconditionError(
        absl::StrCat(in_flight(), " steps are in flight, collect one first")));
  }
  const Bucket* bucket = nullptr;
  if (status.ok()) {
    const absl::StatusOr<const Bucket*> found = BucketFor(*shape);
    status = found.ok() ? CheckReplans() : found.status();
    if (found.ok()) bucket = *found;
  }
  if (!status.ok()) {
    DropInFlight();
    return status;
  }
  InFlight step;
  step.step = next_step_;
  step.outputs = shape->outputs;
  step.shape = bucket->shape;
  step.flops = bucket->flops;
  step.rank_outputs = bucket->outputs;
  step.changed.assign(changed.begin(), changed.end());
  for (const BatchToken& token : batch) {
    const bool known =
        std::any_of(step.lengths_before.begin(), step.lengths_before.end(),
                    [&](const auto& entry) { return entry.first == token.sequence; });
    if (!known) step.lengths_before.emplace_back(token.sequence, lengths_[token.sequence]);
    lengths_[token.sequence] = token.position + 1;
    status.Update(tables_.Reserve(token.sequence, token.position + 1));
  }
  if (status.ok()) status = LaunchBucket(*bucket, batch, changed);
  if (!status.ok()) {
    DropInFlight();
    Undo(step);
    return status;
  }
  in_flight_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ModelRunner::Collect() {
  ASSIGN_OR_RETURN(auto collected, CollectRows(false));
  if (collected.second.empty()) return std::vector<float>();
  return std::move(collected.second[0].words);
}

absl::StatusOr<std::vector<CandidateRow>> ModelRunner::CollectCandidates() {
  ASSIGN_OR_RETURN(const auto collected, CollectRows(true));
  const InFlight& step = collected.first;
  absl::StatusOr<std::vector<CandidateRow>> rows =
      ReadCandidateRows(step.shape, step.changed, collected.second);
  if (!rows.ok()) {
    DropInFlight();
    Undo(step);
  }
  return rows;
}

absl::StatusOr<std::pair<ModelRunner::InFlight, std::vector<StepRows>>> ModelRunner::CollectRows(
    bool candidates) {
  if (in_flight_.empty()) return absl::FailedPreconditionError("no step is in flight");
  if (in_flight_.front().outputs > 0 && candidates != (in_flight_.front().shape.candidates > 0)) {
    return absl::FailedPreconditionError("the step was launched for other rows");
  }
  absl::StatusOr<std::vector<StepRows>> rows = AwaitStep(in_flight_.front());
  InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!rows.ok()) {
    DropInFlight();
    Undo(step);
    return rows.status();
  }
  ++counters_.steps;
  return std::make_pair(std::move(step), *std::move(rows));
}

absl::StatusOr<std::vector<float>> ModelRunner::FetchLogits(const BatchToken& last) {
  ++counters_.logits_fetched;
  Truncate(last.sequence, last.position);
  BatchToken again = last;
  again.output = true;
  return Step({&again, 1});
}

// Waits for what is in flight and takes it back, the latest last launched first.
void ModelRunner::DropInFlight() {
  for (const InFlight& step : in_flight_) {
    (void)group_.Cancel(step.step);
    (void)AwaitStep(step);
  }
  while (!in_flight_.empty()) {
    Undo(in_flight_.back());
    in_flight_.pop_back();
  }
}

void ModelRunner::Undo(const InFlight& step) {
  for (const auto& [sequence, length] : step.lengths_before) {
    lengths_[sequence] = std::min(lengths_[sequence], length);
    tables_.Truncate(sequence, lengths_[sequence]);
  }
}

absl::Status ModelRunner::LaunchBucket(const Bucket& bucket, absl::Span<const BatchToken> batch,
                                       absl::Span<const std::vector<int32_t>> changed) {
  StepInputs inputs(bucket.shape);
  int64_t outputs = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const BatchToken& token = batch[i];
    inputs.tokens[i] = token.token;
    inputs.positions[i] = static_cast<int32_t>(token.position);
    inputs.sequences[i] = token.sequence;
    inputs.slots[i] = tables_.Slot(token.sequence, token.position);
    if (token.output) inputs.output_rows[outputs++] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < changed.size(); ++i) {
    inputs.SetChanged(static_cast<int64_t>(i), changed[i]);
  }
  StepInput step;
  step.step = next_step_;
  step.inputs = inputs.Spans();
  step.deadline = DeadlineFor(bucket.flops);
  for (const TableUpdate& update : tables_.TakeUpdates()) updates_.push_back(update);
  step.table_updates = updates_;
  if (timer_ != nullptr) timer_->Mark(TokenPart::kBuilding);
  RETURN_IF_ERROR(group_.Launch(bucket.instance, step));
  if (timer_ != nullptr) timer_->Mark(TokenPart::kSending);
  updates_.clear();
  ++next_step_;
  return absl::OkStatus();
}

Clock::TimePoint ModelRunner::DeadlineFor(int64_t flops) const {
  auto sum = static_cast<double>(flops);
  for (const InFlight& other : in_flight_) sum += static_cast<double>(other.flops);
  return clock_.Now() + kDeadlineBase +
         std::chrono::duration_cast<Clock::TimePoint::duration>(
             std::chrono::duration<double>(sum / kDeadlineFlopsPerSecond));
}

absl::StatusOr<std::vector<StepRows>> ModelRunner::AwaitStep(const InFlight& step) {
  // Those before it may still run.
  ASSIGN_OR_RETURN(const StepOutput output, group_.Await(step.step, DeadlineFor(0)));
  if (timer_ != nullptr) timer_->MarkStep(output);
  const int64_t width = step.shape.hidden ? model_.hyperparameters().n_embd : n_vocab();
  return TakeStepRows(step.shape, width, step.outputs, *step.rank_outputs, output);
}

int64_t ModelRunner::Truncate(int32_t sequence, int64_t length) {
  const bool under_way =
      std::any_of(in_flight_.begin(), in_flight_.end(), [&](const InFlight& step) {
        return std::any_of(step.lengths_before.begin(), step.lengths_before.end(),
                           [&](const auto& entry) { return entry.first == sequence; });
      });
  if (under_way) DropInFlight();
  lengths_[sequence] = tables_.Truncate(sequence, std::min(lengths_[sequence], length));
  return lengths_[sequence];
}

int64_t ModelRunner::Adopt(int32_t sequence, absl::Span<const int32_t> tokens) {
  lengths_[sequence] = tables_.Adopt(sequence, tokens);
  return lengths_[sequence];
}

void ModelRunner::Publish(int32_t sequence, absl::Span<const int32_t> tokens) {
  tables_.Publish(sequence, tokens);
}

}  // namespace weft
