#include "coordinator/engine/model_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// A step may take this long beyond a second per gigaflop: far more than any machine needs, so only
// a hang runs into it.
constexpr double kDeadlineFlopsPerSecond = 1e8;
constexpr std::chrono::seconds kDeadlineBase{60};

// The smallest power of two that holds `count`, or `limit` if that is smaller.
int64_t BucketSize(int64_t count, int64_t limit) {
  int64_t size = 1;
  while (size < count) size *= 2;
  return std::min(size, limit);
}

int64_t GraphFlops(const Graph& graph) {
  int64_t flops = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.Executes(NodeId{i})) flops += NodeCost(graph, NodeId{i}).flops;
  }
  return flops;
}

template <typename T>
absl::Span<const uint8_t> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// The inputs of one step, padded to the bucket.
struct StepInputs {
  std::vector<int32_t> tokens, positions, sequences, slots, output_rows;

  StepInputs(int64_t token_count, int64_t output_count)
      : tokens(token_count, 0),
        positions(token_count, -1),
        sequences(token_count, 0),
        slots(token_count, 0),
        output_rows(output_count, -1) {}
};

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
      pages_(1 + pages_per_sequence_ * options.sequences),
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
  RETURN_IF_ERROR(runner->AllocateCaches());
  RETURN_IF_ERROR(runner->LoadWeights());
  RETURN_IF_ERROR(runner->ReserveBuckets());
  return runner;
}

absl::Status ModelRunner::AllocateCaches() {
  int32_t id = 0;
  for (const CacheSpec& cache : model_.caches()) {
    const DType dtype = cache.is_value ? options_.value_type : options_.key_type;
    ASSIGN_OR_RETURN(const TensorLayout layout, PackedLayout(dtype, cache.PageExtents(pages_)));
    Device& device = *placed_.devices[placed_.placement.caches[id]];
    const int64_t bytes = device.buffer_type().TensorBytes(layout);
    memory_.cache += bytes;
    absl::StatusOr<std::unique_ptr<Buffer>> buffer =
        device.buffer_type().Allocate(bytes, BufferUsage::kAny);
    if (!buffer.ok() && !absl::IsResourceExhausted(buffer.status())) return buffer.status();
    if (!buffer.ok()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "not enough memory for a KV cache of ", options_.context, " tokens (", bytes,
          " bytes for part of layer ", cache.layer, " on ", device.name(), "): ",
          buffer.status().message(), "; lower the context with -c or use -ctk q8_0 -ctv q8_0"));
    }
    bindings_.push_back({SlotKind::kCache, id++, buffer->get(), 0});
    caches_.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status ModelRunner::LoadWeights() {
  ASSIGN_OR_RETURN(weights_, LoadedWeights::Load(model_, placed_.devices, placed_.placement.weights,
                                                 options_.load_progress, options_.foreign_weights));
  memory_.weights = weights_->bytes();
  for (const SlotBinding& binding : weights_->bindings()) bindings_.push_back(binding);
  return absl::OkStatus();
}

// The largest step first: what does not fit shows now, and later buckets find their arena in place.
absl::Status ModelRunner::PlanBuckets() {
  const int64_t most = std::min(options_.ubatch, options_.context);
  RETURN_IF_ERROR(BucketFor(most, std::min(most, options_.reserve_outputs)).status());
  RETURN_IF_ERROR(BucketFor(std::min(most, options_.sequences), 1).status());
  // Where placement depends on the batch, a smaller step may need more of some device.
  for (int64_t tokens = 1; placed_.devices.size() > 1 && tokens < most; tokens *= 2) {
    RETURN_IF_ERROR(BucketFor(tokens, std::min(tokens, options_.reserve_outputs)).status());
  }
  return absl::OkStatus();
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
  reserved_replacements_ = group_.counters().memory_replaced;
  return absl::OkStatus();
}

GraphShape ModelRunner::ShapeOf(int64_t tokens, int64_t outputs) const {
  GraphShape shape;
  shape.tokens = tokens;
  shape.outputs = outputs;
  shape.sequences = options_.sequences;
  shape.pages_per_sequence = pages_per_sequence_;
  shape.pages = pages_;
  shape.context = options_.context;
  shape.key_type = options_.key_type;
  shape.value_type = options_.value_type;
  return shape;
}

absl::StatusOr<FleetProgram> ModelRunner::Compile(const Graph& graph, int64_t tokens) {
  const PlanInput input = MakePlanInput(graph, placed_, tokens, plan_options_);
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  if (plan_options_.pipeline && plan.copies == 1) {
    if (options_.logger != nullptr) {
      options_.logger->Debug(absl::StrCat("no pipelining: ", plan.pipeline_refusal));
    }
    plan_options_.pipeline = false;
  }
  int64_t bytes = 0;
  int64_t lower_bound = 0;
  for (const PoolPlan& pool : plan.memory.pools) {
    bytes += pool.Bytes();
    lower_bound += pool.lower_bound;
  }
  if (bytes > counters_.arena_bytes) {
    counters_.arena_bytes = bytes;
    counters_.arena_lower_bound = lower_bound;
  }
  return group_.Compile(context, plan);
}

absl::StatusOr<const ModelRunner::Bucket*> ModelRunner::BucketFor(int64_t tokens, int64_t outputs) {
  Bucket bucket;
  bucket.tokens = BucketSize(tokens, options_.ubatch);
  bucket.outputs = outputs == 0 ? 0 : BucketSize(outputs, bucket.tokens);
  const auto key = std::make_pair(bucket.tokens, bucket.outputs);
  const auto found = buckets_.find(key);
  if (found != buckets_.end()) {
    ++counters_.graphs_reused;
    return &found->second;
  }

  ASSIGN_OR_RETURN(const ModelGraph graph, model_.BuildGraph(ShapeOf(key.first, key.second)));
  ASSIGN_OR_RETURN(FleetProgram compiled, Compile(graph.graph, bucket.tokens));
  ++counters_.graphs_built;
  bucket.flops = GraphFlops(graph.graph);
  ASSIGN_OR_RETURN(const ProgramId program, group_.Install(std::move(compiled)));
  absl::StatusOr<InstanceId> instance = group_.Instantiate(program, bindings_);
  if (absl::IsResourceExhausted(instance.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory to compute ", bucket.tokens,
                     " tokens at once: ", instance.status().message(), "; lower -ub"));
  }
  RETURN_IF_ERROR(instance.status());
  bucket.instance = *instance;
  return &buckets_.emplace(key, bucket).first->second;
}

absl::Status ModelRunner::CheckBatch(absl::Span<const BatchToken> batch) const {
  if (batch.empty() || static_cast<int64_t>(batch.size()) > options_.ubatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch of ", batch.size(), " tokens, want 1 to ", options_.ubatch));
  }
  std::vector<int64_t> lengths = lengths_;
  for (const BatchToken& token : batch) {
    if (token.token < 0 || token.token >= n_vocab()) {
      return absl::OutOfRangeError(
          absl::StrCat("token id ", token.token, " is outside the vocabulary of ", n_vocab()));
    }
    if (token.sequence < 0 || token.sequence >= options_.sequences) {
      return absl::OutOfRangeError(absl::StrCat("sequence ", token.sequence));
    }
    if (token.position != lengths[token.sequence]) {
      return absl::InvalidArgumentError(absl::StrCat("position ", token.position, " of sequence ",
                                                     token.sequence, " does not follow ",
                                                     lengths[token.sequence], " tokens"));
    }
    if (++lengths[token.sequence] > options_.context) {
      return absl::OutOfRangeError(
          absl::StrCat("the context of ", options_.context, " tokens is full; raise -c"));
    }
  }
  return absl::OkStatus();
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
  absl::Status status = CheckBatch(batch);
  if (status.ok() && in_flight() >= max_in_flight()) {
    status = absl::FailedPreconditionError(
        absl::StrCat(in_flight(), " steps are in flight, collect one first"));
  }
  int64_t outputs = 0;
  for (const BatchToken& token : batch) outputs += token.output ? 1 : 0;
  const Bucket* bucket = nullptr;
  if (status.ok()) {
    const absl::StatusOr<const Bucket*> found =
        BucketFor(static_cast<int64_t>(batch.size()), outputs);
    status = found.ok() ? CheckReplans() : found.status();
    if (found.ok()) bucket = *found;
  }
  if (!status.ok()) {
    DropInFlight();
    return status;
  }
  InFlight step;
  step.step = next_step_;
  step.outputs = outputs;
  step.flops = bucket->flops;
  for (const BatchToken& token : batch) {
    const bool known =
        std::any_of(step.lengths_before.begin(), step.lengths_before.end(),
                    [&](const auto& entry) { return entry.first == token.sequence; });
    if (!known) step.lengths_before.emplace_back(token.sequence, lengths_[token.sequence]);
    lengths_[token.sequence] = token.position + 1;
    status.Update(tables_.Reserve(token.sequence, token.position + 1));
  }
  if (status.ok()) status = LaunchBucket(*bucket, batch);
  if (!status.ok()) {
    DropInFlight();
    Undo(step);
    return status;
  }
  in_flight_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ModelRunner::Collect() {
  if (in_flight_.empty()) return absl::FailedPreconditionError("no step is in flight");
  absl::StatusOr<std::vector<float>> logits = AwaitStep(in_flight_.front());
  if (!logits.ok()) {
    const InFlight failed = in_flight_.front();
    in_flight_.pop_front();
    DropInFlight();
    Undo(failed);
    return logits.status();
  }
  in_flight_.pop_front();
  ++counters_.steps;
  return logits;
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

absl::Status ModelRunner::LaunchBucket(const Bucket& bucket, absl::Span<const BatchToken> batch) {
  StepInputs inputs(bucket.tokens, bucket.outputs);
  int64_t outputs = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const BatchToken& token = batch[i];
    inputs.tokens[i] = token.token;
    inputs.positions[i] = static_cast<int32_t>(token.position);
    inputs.sequences[i] = token.sequence;
    inputs.slots[i] = tables_.Slot(token.sequence, token.position);
    if (token.output) inputs.output_rows[outputs++] = static_cast<int32_t>(i);
  }
  StepInput step;
  step.step = next_step_;
  // By ModelInput: the id of an input is its position here.
  step.inputs = {Bytes(inputs.tokens), Bytes(inputs.positions), Bytes(inputs.sequences),
                 Bytes(inputs.slots)};
  if (bucket.outputs > 0) step.inputs.push_back(Bytes(inputs.output_rows));
  step.deadline = DeadlineFor(bucket.flops);
  for (const TableUpdate& update : tables_.TakeUpdates()) updates_.push_back(update);
  step.table_updates = updates_;
  RETURN_IF_ERROR(group_.Launch(bucket.instance, step));
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

absl::StatusOr<std::vector<float>> ModelRunner::AwaitStep(const InFlight& step) {
  // Those before it may still run.
  ASSIGN_OR_RETURN(const StepOutput output, group_.Await(step.step, DeadlineFor(0)));
  std::vector<float> logits(static_cast<size_t>(step.outputs * n_vocab()));
  if (!logits.empty()) {
    if (output.outputs.size() != 1 || output.outputs[0].size() < logits.size() * sizeof(float)) {
      return absl::InternalError("the step returned no logits");
    }
    std::memcpy(logits.data(), output.outputs[0].data(), logits.size() * sizeof(float));
  }
  return logits;
}

void ModelRunner::Truncate(int32_t sequence, int64_t length) {
  DropInFlight();
  lengths_[sequence] = std::min(lengths_[sequence], length);
  tables_.Truncate(sequence, lengths_[sequence]);
}

}  // namespace weft
