// How long planning takes: the 8B shape with 8 to 128 layers on 3 and on 40 devices, a prompt step
// and a decode step; and how it grows with the nodes of the graph.
//
//   weft_planner_bench [--benchmark_filter=...]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/null_device.h"
#include "common/program/program.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/scheduler/execution_plan.h"
#include "coordinator/scheduler/program_compiler.h"
#include "tests/support/sparse_model.h"

namespace weft {
namespace {

template <typename T>
T ValueOrAbort(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::abort();
}

struct Setting {
  std::string name;
  int64_t devices = 3;
  int64_t tokens = 1;
  int64_t n_gpu_layers = -1;  // 0: every weight in host memory, so that prompts are offloaded
  bool products = false;      // the GPUs compute products only, beside filling their caches
};

absl::Status ProductsOnly(const Graph& graph, NodeId id) {
  const Op op = graph.node(id).op;
  if (op == Op::kMulMat || op == Op::kKvStore) return absl::OkStatus();
  return absl::UnimplementedError("products only");
}

// GPUs, two to a host, and the coordinator's CPU, which shares the first host.
struct Machine {
  std::vector<std::unique_ptr<NullDevice>> owned;
  std::vector<Device*> devices;

  explicit Machine(const Setting& setting) {
    for (int64_t i = 0; i + 1 < setting.devices; ++i) {
      NullDeviceOptions options;
      options.host = i < 2 ? "local" : absl::StrCat("w", i / 2);
      options.name = absl::StrCat(options.host, ".gpu", i % 2);
      options.capabilities.async = true;
      options.capabilities.events = true;
      options.offload_batch = kDefaultOffloadBatch;
      if (setting.products) options.supports = ProductsOnly;
      owned.push_back(std::make_unique<NullDevice>(options));
    }
    NullDeviceOptions options;
    options.name = "local.cpu0";
    options.kind = DeviceKind::kCpu;
    owned.push_back(std::make_unique<NullDevice>(options));
    for (const auto& device : owned) devices.push_back(device.get());
  }
};

// A graph that is ready to be planned.
struct Job {
  SparseModel sparse;
  Machine machine;
  ModelGraph graph;
  PlanInput input;

  Job(int64_t layers, const Setting& setting) : sparse("8b", layers), machine(setting) {
    GraphShape shape;
    shape.tokens = setting.tokens;
    shape.pages_per_sequence = 512;
    shape.pages = 513;
    shape.context = 8192;
    graph = ValueOrAbort(sparse.model().BuildGraph(shape));
    PlacedDevices placed;
    placed.devices = machine.devices;
    PlacementOptions placement;
    placement.n_gpu_layers = setting.n_gpu_layers;
    placed.placement = ValueOrAbort(PlaceModel(sparse.model(), placed.devices, placement));
    PlanOptions options;
    options.pipeline = true;
    input = MakePlanInput(graph.graph, placed, setting.tokens, options);
  }
};

void CountNodes(benchmark::State& state, const Job& job) {
  state.SetComplexityN(job.graph.graph.size());
  state.counters["nodes"] = job.graph.graph.size();
}

// Passes, scheduled graph, memory and program.
void Plan(benchmark::State& state, const Setting& setting) {
  const Job job(state.range(0), setting);
  for (auto _ : state) {
    const PlanContext context = ValueOrAbort(PlanContext::Create(job.input));
    const ExecutionPlan plan = ValueOrAbort(MakeExecutionPlan(context, {}));
    benchmark::DoNotOptimize(ValueOrAbort(CompilePlan(context, plan)));
  }
  CountNodes(state, job);
}

void Verify(benchmark::State& state, const Setting& setting) {
  const Job job(state.range(0), setting);
  const PlanContext context = ValueOrAbort(PlanContext::Create(job.input));
  const ExecutionPlan plan = ValueOrAbort(MakeExecutionPlan(context, {}));
  const Program program = ValueOrAbort(CompilePlan(context, plan));
  for (auto _ : state) {
    if (!VerifyProgram(program).ok()) std::abort();
  }
  CountNodes(state, job);
}

void Register() {
  const std::vector<Setting> settings = {{"3 devices, decode", 3, 1},
                                         {"3 devices, prompt", 3, 512},
                                         {"3 devices, offloaded prompt", 3, 512, 0},
                                         {"3 devices, products only", 3, 512, -1, true},
                                         {"40 devices, decode", 40, 1},
                                         {"40 devices, prompt", 40, 512}};
  for (const Setting& setting : settings) {
    for (const auto& [verb, run] : {std::pair("plan: ", &Plan), std::pair("verify: ", &Verify)}) {
      benchmark::RegisterBenchmark(
          (verb + setting.name).c_str(),
          [setting, run = run](benchmark::State& state) { run(state, setting); })
          ->RangeMultiplier(2)
          ->Range(8, 128)
          ->ArgName("layers")
          ->Unit(benchmark::kMillisecond)
          ->Complexity(benchmark::oN);
    }
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  weft::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
