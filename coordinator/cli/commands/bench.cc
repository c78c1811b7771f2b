#include "coordinator/cli/commands/bench.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/progress_bar.h"
#include "coordinator/engine/generator.h"

namespace weft {
namespace {

// What one step of that many tokens computes and reads, by the op table.
struct StepWork {
  double quantized_ops = 0;  // products with block-quantised weights
  double float_ops = 0;      // products with the others
  double weight_bytes = 0;   // weights read once
};

StepWork WorkOf(const Graph& graph) {
  StepWork work;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId{i});
    if (node.op != Op::kMulMat && node.op != Op::kMulMatId) continue;
    const TensorLayout& weight = graph.layout(node.sources[0]);
    const OpCost cost = NodeCost(graph, NodeId{i});
    const double ops = static_cast<double>(cost.flops);
    (GetDTypeInfo(weight.dtype).quantized ? work.quantized_ops : work.float_ops) += ops;
    double bytes = static_cast<double>(RowCount(weight) * RowByteSize(weight));
    if (node.op == Op::kMulMatId) {
      const auto experts = static_cast<double>(weight.ne[2]);
      const auto chosen = static_cast<double>(ElementCount(graph.layout(node.sources[2])));
      bytes *= std::min(1.0, chosen / experts);
    }
    work.weight_bytes += bytes;
  }
  return work;
}

absl::StatusOr<StepWork> WorkOfStep(const Model& model, int64_t tokens, int64_t outputs) {
  GraphShape shape;
  shape.tokens = tokens;
  shape.outputs = outputs;
  ASSIGN_OR_RETURN(const ModelGraph graph, model.BuildGraph(shape));
  return WorkOf(graph.graph);
}

// Deterministic ids spread over the vocabulary.
std::vector<int32_t> SomeTokens(int64_t count, int64_t n_vocab) {
  std::vector<int32_t> tokens(count);
  for (int64_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>((i * 7919 + 17) % n_vocab);
  return tokens;
}

// Seconds of each repetition, sorted.
absl::StatusOr<std::vector<double>> Measure(const Clock& clock, int64_t repetitions,
                                            const std::function<absl::Status()>& prepare,
                                            const std::function<absl::Status()>& run) {
  std::vector<double> seconds;
  for (int64_t i = -1; i < repetitions; ++i) {
    RETURN_IF_ERROR(prepare());
    const Clock::TimePoint start = clock.Now();
    RETURN_IF_ERROR(run());
    if (i >= 0) seconds.push_back(SecondsSince(clock, start));  // the first one warms up
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

BenchResult Summarize(bool prefill, int64_t tokens, int64_t batch, int64_t context,
                      const std::vector<double>& seconds, const StepWork& work,
                      const MachineLimits& limits) {
  BenchResult result;
  result.prefill = prefill;
  result.tokens = tokens;
  result.batch = batch;
  result.context = context;
  const auto count = static_cast<double>(tokens);
  const size_t n = seconds.size();
  const double middle = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
  result.median = count / middle;
  result.least = count / seconds.back();
  result.most = count / seconds.front();
  const double steps_per_second = result.median / static_cast<double>(batch);
  if (limits.read_bytes_per_s > 0) {
    result.bandwidth_share = work.weight_bytes * steps_per_second / limits.read_bytes_per_s;
  }
  if (limits.int8_ops_per_s > 0 && limits.f32_flops > 0) {
    result.peak_share = steps_per_second * (work.quantized_ops / limits.int8_ops_per_s +
                                            work.float_ops / limits.f32_flops);
  }
  return result;
}

absl::StatusOr<BenchResult> Prefill(LocalSession& session, int64_t tokens, int64_t repetitions,
                                    const MachineLimits& limits) {
  ModelRunner& runner = session.runner();
  const std::vector<int32_t> prompt = SomeTokens(tokens, runner.n_vocab());
  ASSIGN_OR_RETURN(const std::vector<double> seconds,
                   Measure(
                       session.clock(), repetitions,
                       [&] {
                         runner.Truncate(0, 0);
                         return absl::OkStatus();
                       },
                       [&] { return weft::Prefill(runner, prompt, 0, false).status(); }));
  const int64_t batch = std::min(tokens, runner.options().ubatch);
  ASSIGN_OR_RETURN(const StepWork work, WorkOfStep(session.model(), batch, 1));
  return Summarize(true, tokens, batch, 0, seconds, work, limits);
}

absl::StatusOr<BenchResult> Decode(LocalSession& session, int64_t tokens, int64_t depth,
                                   int64_t repetitions, const MachineLimits& limits) {
  ModelRunner& runner = session.runner();
  const std::vector<int32_t> ids = SomeTokens(depth + tokens, runner.n_vocab());
  if (depth > 0) {
    runner.Truncate(0, 0);
    RETURN_IF_ERROR(
        weft::Prefill(runner, absl::MakeConstSpan(ids).subspan(0, depth), 0, false).status());
  }
  ASSIGN_OR_RETURN(const std::vector<double> seconds,
                   Measure(
                       session.clock(), repetitions,
                       [&] {
                         runner.Truncate(0, depth);
                         return absl::OkStatus();
                       },
                       [&]() -> absl::Status {
                         for (int64_t i = depth; i < depth + tokens; ++i) {
                           const BatchToken next = {ids[i], i, 0, true};
                           RETURN_IF_ERROR(runner.Step({&next, 1}).status());
                         }
                         return absl::OkStatus();
                       }));
  ASSIGN_OR_RETURN(const StepWork work, WorkOfStep(session.model(), 1, 1));
  return Summarize(false, tokens, 1, depth, seconds, work, limits);
}

absl::Status CheckCount(const char* flag, int64_t count, int64_t context) {
  if (count >= 1 && count <= context) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", count, " tokens, want 1 to the context of ", context, "; raise -c"));
}

}  // namespace

absl::StatusOr<BenchReport> RunBench(LocalSession& session, const BenchOptions& options,
                                     InstructionSet isa) {
  const int64_t context = session.runner().options().context;
  if (options.repetitions < 1) return absl::InvalidArgumentError("-r: want at least 1 repetition");
  if (options.depth < 0) return absl::InvalidArgumentError("-d: negative depth");
  for (const int64_t count : options.prefill) RETURN_IF_ERROR(CheckCount("-p", count, context));
  for (const int64_t count : options.decode) {
    RETURN_IF_ERROR(CheckCount("-n", count, context - options.depth));
  }
  BenchReport report;
  report.model = session.file().file(0).path();
  report.threads = session.threads();
  report.limits = MeasureMachineLimits(session.threads(), isa, session.clock());
  ProgressBar bar(session.clock(), "benchmark", "tests");
  const auto total = static_cast<int64_t>(options.prefill.size() + options.decode.size());
  for (const int64_t count : options.prefill) {
    bar.Update(static_cast<int64_t>(report.results.size()), total);
    ASSIGN_OR_RETURN(BenchResult result,
                     Prefill(session, count, options.repetitions, report.limits));
    report.results.push_back(result);
  }
  for (const int64_t count : options.decode) {
    bar.Update(static_cast<int64_t>(report.results.size()), total);
    ASSIGN_OR_RETURN(BenchResult result,
                     Decode(session, count, options.depth, options.repetitions, report.limits));
    report.results.push_back(result);
  }
  return report;
}

std::string BenchText(const BenchReport& report) {
  std::string text = absl::StrFormat(
      "%s, %d threads\nmachine: read %.1f GB/s, int8 %.1f Gop/s, F32 %.1f Gflop/s\n", report.model,
      report.threads, report.limits.read_bytes_per_s / 1e9, report.limits.int8_ops_per_s / 1e9,
      report.limits.f32_flops / 1e9);
  absl::StrAppendFormat(&text, "%-8s %7s %7s %8s  %12s %12s %12s  %10s %8s\n", "phase", "tokens",
                        "batch", "context", "tokens/s", "least", "most", "bandwidth", "peak");
  for (const BenchResult& r : report.results) {
    absl::StrAppendFormat(&text, "%-8s %7d %7d %8d  %12.2f %12.2f %12.2f  %8.1f %% %6.1f %%\n",
                          r.prefill ? "prefill" : "decode", r.tokens, r.batch, r.context, r.median,
                          r.least, r.most, 100 * r.bandwidth_share, 100 * r.peak_share);
  }
  return text;
}

std::string BenchJson(const BenchReport& report) {
  nlohmann::ordered_json json = {{"model", report.model},
                                 {"threads", report.threads},
                                 {"limits",
                                  {{"read_bytes_per_s", report.limits.read_bytes_per_s},
                                   {"int8_ops_per_s", report.limits.int8_ops_per_s},
                                   {"f32_flops", report.limits.f32_flops}}},
                                 {"results", nlohmann::ordered_json::array()}};
  for (const BenchResult& r : report.results) {
    json["results"].push_back(
        {{"phase", r.prefill ? "prefill" : "decode"},
         {"tokens", r.tokens},
         {"batch", r.batch},
         {"context", r.context},
         {"tokens_per_s", {{"median", r.median}, {"min", r.least}, {"max", r.most}}},
         {"bandwidth_share", r.bandwidth_share},
         {"peak_share", r.peak_share}});
  }
  return json.dump() + "\n";
}

}  // namespace weft
