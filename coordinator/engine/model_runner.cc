#include "coordinator/engine/model_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/program_compiler.h"

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

absl::Status CheckCacheType(const char* flag, DType dtype, int64_t head) {
  const bool known = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kQ8_0;
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": KV pages are F32, F16 or Q8_0"));
  }
  const int64_t block = GetDTypeInfo(dtype).block_elements;
  if (head % block == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": heads of ", head, " elements are not a multiple of the type's block of ", block,
      "; use F16 or F32"));
}

absl::Status CheckOptions(const Model& model, const RunnerOptions& options) {
  const Hyperparameters& h = model.hyperparameters();
  if (options.context < 1 || options.context > kMaxContext) {
    return absl::InvalidArgumentError(
        absl::StrCat("-c: context of ", options.context, " tokens, want 1 to ", kMaxContext));
  }
  if (options.ubatch < 1 || options.ubatch > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat("-ub: ubatch of ", options.ubatch, " tokens, want 1 to 65536"));
  }
  if (options.sequences < 1 || options.sequences > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.sequences, " sequences, want 1 to 4096"));
  }
  RETURN_IF_ERROR(CheckCacheType("-ctk", options.key_type, h.key_head));
  return CheckCacheType("-ctv", options.value_type, h.value_head);
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

ModelRunner::ModelRunner(const Model& model, Device& device, ProgramHost& host, const Clock& clock,
                         const RunnerOptions& options)
    : model_(model),
      device_(device),
      host_(host),
      clock_(clock),
      options_(options),
      pages_per_sequence_(CeilDivide(options.context, kPageTokens)),
      pages_(1 + pages_per_sequence_ * options.sequences),
      tables_(static_cast<int32_t>(options.sequences), static_cast<int32_t>(pages_per_sequence_),
              static_cast<int32_t>(pages_)),
      lengths_(options.sequences, 0) {}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model, Device& device,
                                                                 ProgramHost& host,
                                                                 const Clock& clock,
                                                                 const RunnerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(model, options));
  std::unique_ptr<ModelRunner> runner(new ModelRunner(model, device, host, clock, options));
  if (runner->pages_ > (int64_t{1} << 27)) {
    return absl::InvalidArgumentError(absl::StrCat("context of ", options.context, " for ",
                                                   options.sequences, " sequences is too large"));
  }
  RETURN_IF_ERROR(runner->AllocateCaches());
  ASSIGN_OR_RETURN(runner->weights_, LoadedWeights::Load(model, device, options.load_progress));
  runner->memory_.weights = runner->weights_->bytes();
  for (const SlotBinding& binding : runner->weights_->bindings()) {
    runner->bindings_.push_back(binding);
  }
  // The largest step first: what does not fit shows now, and later buckets find their arena in
  // place.
  RETURN_IF_ERROR(runner->BucketFor(std::min(options.ubatch, options.context), 1).status());
  return runner;
}

absl::Status ModelRunner::AllocateCaches() {
  int32_t id = 0;
  for (const CacheSpec& cache : model_.caches()) {
    const DType dtype = cache.is_value ? options_.value_type : options_.key_type;
    ASSIGN_OR_RETURN(const TensorLayout layout, PackedLayout(dtype, cache.PageExtents(pages_)));
    const int64_t bytes = device_.buffer_type().TensorBytes(layout);
    memory_.cache += bytes;
    absl::StatusOr<std::unique_ptr<Buffer>> buffer =
        device_.buffer_type().Allocate(bytes, BufferUsage::kAny);
    if (!buffer.ok()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("not enough memory for a KV cache of ", options_.context, " tokens (", bytes,
                       " bytes for part of layer ", cache.layer, "): ", buffer.status().message(),
                       "; lower the context with -c or use -ctk q8_0 -ctv q8_0"));
    }
    bindings_.push_back({SlotKind::kCache, id++, buffer->get(), 0});
    caches_.push_back(*std::move(buffer));
  }
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

absl::StatusOr<Program> ModelRunner::Compile(const Graph& graph) {
  PlanInput input;
  input.graph = &graph;
  input.devices = {&device_};
  input.leafs.resize(graph.nodes().size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr) continue;
    if (leaf->kind == LeafKind::kWeight) {
      input.leafs[i] = {&device_.buffer_type(), BufferUsage::kWeights};
    } else if (leaf->kind == LeafKind::kCache) {
      input.leafs[i] = {&device_.buffer_type(), BufferUsage::kAny};
    }
  }
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  const PoolPlan& arena = plan.memory.pools[0];
  if (arena.Bytes() > counters_.arena_bytes) {
    counters_.arena_bytes = arena.Bytes();
    counters_.arena_lower_bound = arena.lower_bound;
  }
  return CompilePlan(context, plan);
}

absl::StatusOr<const ModelRunner::Bucket*> ModelRunner::BucketFor(int64_t tokens, int64_t outputs) {
  Bucket bucket;
  bucket.tokens = BucketSize(tokens, options_.ubatch);
  bucket.outputs = outputs == 0 ? 0 : BucketSize(outputs, bucket.tokens);
  const auto key = std::make_pair(bucket.tokens, bucket.outputs);
  const auto found = buckets_.find(key);
  if (found != buckets_.end()) return &found->second;

  ASSIGN_OR_RETURN(const ModelGraph graph, model_.BuildGraph(ShapeOf(key.first, key.second)));
  ASSIGN_OR_RETURN(Program compiled, Compile(graph.graph));
  ++counters_.graphs_built;
  bucket.flops = GraphFlops(graph.graph);
  ASSIGN_OR_RETURN(const ProgramId program, host_.Install(std::move(compiled)));
  absl::StatusOr<InstanceId> instance = host_.Instantiate(program, bindings_);
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

absl::StatusOr<std::vector<float>> ModelRunner::Step(absl::Span<const BatchToken> batch) {
  RETURN_IF_ERROR(CheckBatch(batch));
  int64_t outputs = 0;
  for (const BatchToken& token : batch) outputs += token.output ? 1 : 0;
  ASSIGN_OR_RETURN(const Bucket* bucket, BucketFor(static_cast<int64_t>(batch.size()), outputs));
  const std::vector<int64_t> before = lengths_;
  absl::Status status;
  for (const BatchToken& token : batch) {
    lengths_[token.sequence] = token.position + 1;
    status.Update(tables_.Reserve(token.sequence, token.position + 1));
  }
  absl::StatusOr<std::vector<float>> logits;
  if (status.ok()) {
    logits = RunBucket(*bucket, batch);
    status = logits.status();
  }
  if (!status.ok()) {
    for (size_t i = 0; i < before.size(); ++i) Truncate(static_cast<int32_t>(i), before[i]);
    return status;
  }
  ++counters_.steps;
  return logits;
}

absl::StatusOr<std::vector<float>> ModelRunner::RunBucket(const Bucket& bucket,
                                                          absl::Span<const BatchToken> batch) {
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
  step.table_updates = tables_.TakeUpdates();
  RETURN_IF_ERROR(host_.Launch(bucket.instance, step));
  ++next_step_;
  const double seconds = static_cast<double>(bucket.flops) / kDeadlineFlopsPerSecond;
  const auto deadline = clock_.Now() + kDeadlineBase +
                        std::chrono::duration_cast<Clock::TimePoint::duration>(
                            std::chrono::duration<double>(seconds));
  ASSIGN_OR_RETURN(const StepOutput output, host_.Await(step.step, deadline));
  std::vector<float> logits(static_cast<size_t>(outputs * n_vocab()));
  if (!logits.empty()) {
    if (output.outputs.size() != 1 || output.outputs[0].size() < logits.size() * sizeof(float)) {
      return absl::InternalError("the step returned no logits");
    }
    std::memcpy(logits.data(), output.outputs[0].data(), logits.size() * sizeof(float));
  }
  return logits;
}

void ModelRunner::Truncate(int32_t sequence, int64_t length) {
  lengths_[sequence] = std::min(lengths_[sequence], length);
  tables_.Truncate(sequence, lengths_[sequence]);
}

}  // namespace weft
