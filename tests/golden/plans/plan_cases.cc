#include "tests/golden/plans/plan_cases.h"

#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/scheduler/plan_text.h"
#include "tests/support/golden_model.h"

namespace weft {
namespace {

// A GPU as people have them: it asks for large batches of weights in host memory.
RigDevice RealGpu(const std::string& name, const std::string& host) {
  RigDevice gpu = Gpu(name, host);
  gpu.options.offload_batch = kDefaultOffloadBatch;
  return gpu;
}

// A BLAS library: large unquantised products.
RigDevice Blas() {
  RigDevice blas = Accelerator("local.accel0", "local.cpu0");
  blas.options.supports = [](const Graph& graph, NodeId id) -> Support {
    const Node& node = graph.node(id);
    if (node.op != Op::kMulMat) return absl::UnimplementedError("products only");
    const DType dtype = graph.layout(node.sources[0]).dtype;
    const bool plain = dtype == DType::kF32 || dtype == DType::kF16;
    if (!plain) return absl::UnimplementedError("no quantised weights");
    if (node.layout.ne[1] < 32) return absl::UnimplementedError("too few columns");
    return absl::OkStatus();
  };
  return blas;
}

// A GPU in the processor's memory, which takes prompts and leaves single tokens to the processor.
std::vector<RigDevice> Unified() {
  RigDevice gpu = Gpu("local.gpu0");
  gpu.options.reads_host_memory = true;
  gpu.options.preferred_batch.min = 32;
  RigDevice cpu = Cpu("local.cpu0");
  cpu.options.preferred_batch.max = 31;
  return {gpu, cpu};
}

PlacementOptions Layers(int64_t n_gpu_layers) {
  PlacementOptions options;
  options.n_gpu_layers = n_gpu_layers;
  return options;
}

PlacementOptions ExpertsOnCpu() {
  PlacementOptions options;
  options.cpu_moe = true;
  return options;
}

// Attention on the CPU, where the cache is: three changes of device a layer.
PlacementOptions CacheOnCpu() {
  PlacementOptions options;
  options.kv_offload = false;
  return options;
}

}  // namespace

std::vector<RigDevice> OneGpu() { return {RealGpu("local.gpu0", "local"), Cpu("local.cpu0")}; }

std::vector<RigDevice> TwoWorkers() {
  return {RealGpu("w0.gpu0", "w0"), RealGpu("w1.gpu0", "w1"), Cpu("w0.cpu0", "w0"),
          Cpu("w1.cpu0", "w1"), Cpu("local.cpu0")};
}

std::vector<PlanCase> PlanCases() {
  std::vector<PlanCase> cases;
  const auto add = [&](const char* model, const char* list, std::vector<RigDevice> devices,
                       PlacementOptions placement, std::vector<PlanPhase> phases) {
    cases.push_back({absl::StrCat(model, ".", list),
                     model,
                     std::move(devices),
                     std::move(placement),
                     std::move(phases),
                     {}});
  };
  for (const char* model : {"llama-gqa", "qwen3", "qwen3moe"}) {
    add(model, "cpu", {Cpu("local.cpu0")}, {}, {{64, 1}});
    // Rows of the embedding on the CPU, everything else on the GPU.
    add(model, "gpu", OneGpu(), {}, {{64, 2}, {1, 2}});
    add(model, "half", OneGpu(), Layers(2), {{64, -1}, {1, 2}});
    // The input layer is on the first worker's CPU; the coordinator computes nothing.
    add(model, "workers", TwoWorkers(), {}, {{64, 3, 2}, {1, 3, 2}});
    add(model, "offload", OneGpu(), Layers(0), {{64, -1}, {1, 1}});
    cases.back().options.staged_bytes_limit = 1 << 16;
  }
  add("qwen3moe", "experts", OneGpu(), ExpertsOnCpu(), {{64}, {1}});
  // Experts on each worker's CPU; what ends the first worker's last layer stays on that worker.
  add("qwen3moe", "worker_experts", TwoWorkers(), ExpertsOnCpu(), {{64, -1, 2}, {1, -1, 2}});
  add("llama-f16", "accel", {Blas(), Cpu("local.cpu0")}, {}, {{64}, {1, 1}});
  // The worker that holds the output layer finds the candidates.
  add("llama-gqa", "candidates", TwoWorkers(), {}, {{1, 3, 2, 64}});
  add("qwen2", "gpu", OneGpu(), {}, {{1, 2}});
  add("qwen2", "kv_on_cpu", OneGpu(), CacheOnCpu(), {{1}});
  add("qwen2", "unified", Unified(), Layers(0), {{64}, {1, 1}});
  return cases;
}

void PrintTo(const PlanCase& plan_case, std::ostream* out) { *out << plan_case.name; }

const PlanCase& FindPlanCase(const std::vector<PlanCase>& cases, const std::string& name) {
  for (const PlanCase& plan_case : cases) {
    if (plan_case.name == name) return plan_case;
  }
  std::fprintf(stderr, "no plan case %s\n", name.c_str());
  WEFT_CHECK(false);
}

absl::Status PlanOnePhase(const Model& model, const PlacedDevices& placed, const PlanPhase& phase,
                          const PlanOptions& options, const SeePlan& see) {
  GraphShape shape;
  shape.tokens = phase.tokens;
  shape.candidates = phase.candidates;
  shape.changed = phase.candidates;
  shape.pages_per_sequence = 32;
  shape.pages = 33;
  shape.context = 512;
  ASSIGN_OR_RETURN(const ModelGraph graph, model.BuildGraph(shape));
  const PlanInput input = MakePlanInput(graph.graph, placed, phase.tokens, options);
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  see(phase, context, plan);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PlanCaseText(const PlanCase& plan_case, const SeePlan& see) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<GgufFile> file,
      GgufFile::Open(absl::StrCat(TestDataFolder(), "/models/", plan_case.model, "/model.gguf")));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Create(*file));
  const PlanRig rig(plan_case.devices);
  PlacedDevices placed;
  placed.devices = rig.input.devices;
  ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model, placed.devices, plan_case.placement));
  std::string text;
  const auto append = [&](const PlanPhase& phase, const PlanContext& context,
                          const ExecutionPlan& plan) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "== ", phase.tokens, " tokens\n",
                    PlanText(context, plan));
    if (see) see(phase, context, plan);
  };
  for (const PlanPhase& phase : plan_case.phases) {
    RETURN_IF_ERROR(PlanOnePhase(*model, placed, phase, plan_case.options, append));
  }
  return text;
}

}  // namespace weft
