#include "tests/unit/coordinator/engine/ranked_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "coordinator/engine/generator.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/sampling/sampler.h"

namespace weft {

std::string CellText(const RankCell& cell) {
  return absl::StrCat(cell.ranks, " ranks, shares ", absl::StrJoin(cell.shares, ","), ", devices ",
                      static_cast<int>(cell.devices), ", groups of ", cell.tensor_ranks, ", ",
                      cell.processes_per_machine, " processes a machine");
}

RunnerOptions RankedOptions(int64_t ubatch) {
  RunnerOptions options;
  options.context = 128;
  options.ubatch = ubatch;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  options.reserve_outputs = ubatch;
  return options;
}

RankedModel::RankedModel() = default;

RankedModel::~RankedModel() {
  // Before what it runs on.
  runner.reset();
}

absl::Status RankedModel::Open(const std::string& name) {
  golden = ReadGoldenModel(TestDataFolder() + "/models/" + name);
  return OpenFile(golden.model_path);
}

absl::Status RankedModel::OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(file_, GgufFile::Open(path));
  ASSIGN_OR_RETURN(model_, Model::Create(*file_));
  return absl::OkStatus();
}

absl::Status RankedModel::StartWhole(const RunnerOptions& options) {
  RETURN_IF_ERROR(AddCpu("local", ""));
  RETURN_IF_ERROR(AddProcess({devices_[0]}, -1));
  ASSIGN_OR_RETURN(runner,
                   ModelRunner::Create(*model_, *devices_[0], *processes_.back(), clock_, options));
  return absl::OkStatus();
}

absl::Status RankedModel::Start(const RunnerOptions& options, const RankCell& cell) {
  const bool processes = cell.devices == RankDevices::kProcesses;
  for (int r = 0; r < cell.ranks; ++r) {
    if (processes) {
      RETURN_IF_ERROR(
          AddCpu(absl::StrCat("w", r), absl::StrCat("machine ", r / cell.processes_per_machine)));
    } else {
      AddFake(r, cell);
    }
  }
  RETURN_IF_ERROR(AddCpu("local", ""));
  PlacementOptions placement;
  placement.split_mode = SplitMode::kTensor;
  placement.tensor_split = cell.shares;
  placement.tensor_ranks = cell.tensor_ranks;
  PlacedDevices placed;
  placed.devices = devices_;
  ASSIGN_OR_RETURN(groups_, GroupDevices(placed, placement));
  ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model_, placed.devices, placement));
  if (processes) return StartProcesses(placed, options);
  RETURN_IF_ERROR(AddProcess(devices_, -1));
  ASSIGN_OR_RETURN(runner,
                   ModelRunner::Create(*model_, placed, *processes_.back(), clock_, options));
  return absl::OkStatus();
}

absl::Status RankedModel::StartProcesses(const PlacedDevices& placed,
                                         const RunnerOptions& options) {
  const LoopbackOptions loopback{.processes = static_cast<int32_t>(devices_.size())};
  edges_ = std::make_unique<LoopbackEdges>(loopback);
  collectives_ = std::make_unique<LoopbackEdges>(loopback);
  std::vector<GroupMember> members;
  for (size_t p = 0; p < devices_.size(); ++p) {
    RETURN_IF_ERROR(AddProcess({devices_[p]}, static_cast<int32_t>(p)));
    members.push_back({devices_[p]->host(), processes_.back().get()});
  }
  group_ = std::make_unique<ProcessGroup>(std::move(members));
  ASSIGN_OR_RETURN(runner, ModelRunner::Create(*model_, placed, *group_, clock_, options));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> RankedModel::Logits(absl::Span<const int32_t> tokens) {
  runner->Truncate(0, 0);
  return Prefill(*runner, tokens, 0, true);
}

absl::StatusOr<std::vector<float>> RankedModel::Hidden(absl::Span<const int32_t> tokens,
                                                       int64_t most) {
  runner->Truncate(0, 0);
  std::vector<float> all;
  for (size_t begin = 0; begin < tokens.size(); begin += static_cast<size_t>(most)) {
    std::vector<BatchToken> batch;
    for (const int32_t token : tokens.subspan(begin, static_cast<size_t>(most))) {
      batch.push_back({token, static_cast<int64_t>(begin + batch.size()), 0, true});
    }
    RETURN_IF_ERROR(runner->LaunchForHidden(batch));
    ASSIGN_OR_RETURN(const std::vector<float> rows, runner->Collect());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

absl::StatusOr<std::vector<int32_t>> RankedModel::Continue(absl::Span<const int32_t> tokens,
                                                           int64_t count) {
  runner->Truncate(0, 0);
  GenerateCallbacks callbacks;
  callbacks.choose = [](absl::Span<const float> row) -> absl::StatusOr<int32_t> {
    return ArgMax(row);
  };
  ASSIGN_OR_RETURN(const GenerateResult result,
                   Generate(*runner, clock_, tokens, count, callbacks));
  return result.tokens;
}

absl::StatusOr<ExplainReport> RankedModel::Explain(const RunnerOptions& options) const {
  ExplainOptions explain;
  explain.placement.split_mode = SplitMode::kTensor;
  explain.plan = options.plan;
  explain.batch = options.ubatch;
  explain.context = options.context;
  explain.key_type = options.key_type;
  explain.value_type = options.value_type;
  return MakeExplainReport(*model_, devices_, explain);
}

std::vector<EdgeTraffic> RankedModel::Sent(int32_t ranks) {
  std::vector<EdgeTraffic> sent(static_cast<size_t>(ranks));
  for (int32_t from = 0; from < ranks; ++from) {
    for (int32_t to = 0; to < ranks; ++to) {
      if (to == from) continue;
      sent[from].messages += collectives_->traffic(from, to).messages;
      sent[from].bytes += collectives_->traffic(from, to).bytes;
    }
  }
  return sent;
}

absl::Status RankedModel::AddCpu(const std::string& host, const std::string& machine) {
  CpuDeviceOptions options;
  options.host = host;
  options.machine = machine;
  options.name = absl::StrCat(host, ".cpu0");
  options.instruction_set = BestInstructionSet();
  ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> cpu, CpuDevice::Create(options));
  devices_.push_back(cpu.get());
  owned_.push_back(std::move(cpu));
  return absl::OkStatus();
}

void RankedModel::AddFake(int rank, const RankCell& cell) {
  FakeDeviceOptions fake;
  fake.host = "w";
  fake.name = absl::StrCat("w.gpu", rank);
  fake.seed = static_cast<uint64_t>(rank) + 1;
  if (cell.adjust) cell.adjust(rank, fake);
  owned_.push_back(std::make_unique<FakeDevice>(std::move(fake)));
  devices_.push_back(owned_.back().get());
}

absl::Status RankedModel::AddProcess(std::vector<Device*> devices, int32_t number) {
  LocalProgramHostOptions options;
  options.devices = std::move(devices);
  options.edges = number < 0 ? nullptr : &edges_->port(number);
  options.collectives = number < 0 ? nullptr : &collectives_->port(number);
  ASSIGN_OR_RETURN(processes_.emplace_back(), LocalProgramHost::Create(std::move(options)));
  return absl::OkStatus();
}

}  // namespace weft
