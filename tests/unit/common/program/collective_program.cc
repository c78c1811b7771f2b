#include "tests/unit/common/program/collective_program.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"

namespace weft {

Program RankedProgram(const RankedProgramOptions& options) {
  const auto ranks = static_cast<int32_t>(options.process_of_rank.size());
  GraphBuilder builder;
  std::vector<int32_t> devices;
  ProgramCommunicator communicator;
  const int64_t all = std::accumulate(options.counts.begin(), options.counts.end(), int64_t{0});
  const AllGatherAttributes gather{{7, 0}, DType::kF32,    DType::kF32,
                                   0,      {all, 3, 1, 1}, options.counts};
  int32_t device = 0;
  const auto on_device = [&](NodeId id, std::string_view name, int32_t rank) {
    devices.push_back(device);
    return builder.Name(id, absl::StrCat(std::string(name), " ", rank));
  };
  for (int32_t r = 0; r < ranks; ++r) {
    const int32_t process = options.process_of_rank[r];
    if (process != options.process) {
      communicator.ranks.push_back({process, -1, process});
      continue;
    }
    communicator.ranks.push_back({-1, device, process});
    const NodeId x =
        on_device(builder.Leaf(LeafKind::kInput, 0, DType::kF32, {16, 4, 1, 1}, "x"), "x", r);
    const NodeId term = on_device(builder.Scale(x, static_cast<float>(r + 1)), "term", r);
    const NodeId sum = on_device(
        builder.Make(Op::kAllReduce, AllReduceAttributes{{4, 0}, options.wire}, {term}), "sum", r);
    NodeId part = kNoNode;
    const auto make_part = [&] {
      if (options.counts[r] == 0) return;
      const FillAttributes fill{{options.counts[r], 3, 1, 1}, static_cast<float>(10 + r)};
      part = on_device(builder.Make(Op::kFill, fill, {}), "part", r);
    };
    if (options.detached) make_part();
    builder.MarkOutput(on_device(builder.Scale(sum, 1, 1), "result", r));
    if (!options.detached) make_part();
    builder.MarkOutput(on_device(builder.Make(Op::kAllGather, gather, {part}), "all", r));
    ++device;
  }
  MachineForTest machine = SeparateMachine(device);
  machine.communicators = {communicator};
  machine.algorithm = options.algorithm;
  machine.overlap = options.overlap;
  machine.detached = options.detached;
  return CompileForTest(*std::move(builder).Finish(), devices, machine);
}

std::vector<float> RankedSum(const RankedProgramOptions& options, const std::vector<float>& x) {
  const auto ranks = static_cast<float>(options.process_of_rank.size());
  std::vector<float> result;
  for (const float value : x) result.push_back(value * ranks * (ranks + 1) / 2 + 1);
  return result;
}

std::vector<float> RankedGather(const RankedProgramOptions& options) {
  std::vector<float> row;
  for (size_t r = 0; r < options.counts.size(); ++r) {
    row.insert(row.end(), static_cast<size_t>(options.counts[r]), static_cast<float>(10 + r));
  }
  std::vector<float> result;
  for (int i = 0; i < 3; ++i) result.insert(result.end(), row.begin(), row.end());
  return result;
}

}  // namespace weft
