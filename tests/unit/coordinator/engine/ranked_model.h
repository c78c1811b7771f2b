// Models cut over ranks, for tests of what they answer together: each rank a process with a CPU of
// its own, or devices of one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "common/program/loopback_edges.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/engine/rank_groups.h"
#include "coordinator/explain/explain_report.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"

namespace weft {

enum class RankDevices {
  kProcesses,    // a CPU each
  kFakeDevices,  // of one process, with memories apart
};

// How a model is cut over ranks.
struct RankCell {
  int ranks = 2;
  std::vector<double> shares = {};
  RankDevices devices = RankDevices::kProcesses;
  int64_t tensor_ranks = 0;
  int processes_per_machine = 1;                                  // of kProcesses
  std::function<void(int, FakeDeviceOptions&)> adjust = nullptr;  // fake devices, by rank
};
std::string CellText(const RankCell& cell);

// Short steps with caches that do not round.
RunnerOptions RankedOptions(int64_t ubatch);

// A model over ranks "w0", "w1", ... in groups, and a coordinator without layers.
class RankedModel {
 public:
  RankedModel();
  ~RankedModel();

  // One of tests/data/models; `golden` is read with it.
  absl::Status Open(const std::string& name);
  // Any file.
  absl::Status OpenFile(const std::string& path);
  // One device that is not divided.
  absl::Status StartWhole(const RunnerOptions& options);
  absl::Status Start(const RunnerOptions& options, const RankCell& cell);

  absl::StatusOr<std::vector<float>> Logits(absl::Span<const int32_t> tokens);
  // [tokens, n_embd], by steps of up to `most` tokens.
  absl::StatusOr<std::vector<float>> Hidden(absl::Span<const int32_t> tokens, int64_t most);
  // The likeliest tokens.
  absl::StatusOr<std::vector<int32_t>> Continue(absl::Span<const int32_t> tokens, int64_t count);
  absl::StatusOr<ExplainReport> Explain(const RunnerOptions& options) const;
  // In collectives, by rank; where each is a process.
  std::vector<EdgeTraffic> Sent(int32_t ranks);

  const Model& model() const { return *model_; }

  GoldenModel golden;
  std::unique_ptr<ModelRunner> runner;

 private:
  absl::Status AddCpu(const std::string& host, const std::string& machine);
  void AddFake(int rank, const RankCell& cell);
  // `number` is the process's among those that send each other messages; -1: it is alone.
  absl::Status AddProcess(std::vector<Device*> devices, int32_t number);
  absl::Status StartProcesses(const PlacedDevices& placed, const RunnerOptions& options);

  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
  std::vector<std::unique_ptr<MetaDevice>> groups_;
  SystemClock clock_;
  std::unique_ptr<LoopbackEdges> edges_;
  std::unique_ptr<LoopbackEdges> collectives_;
  std::vector<std::unique_ptr<LocalProgramHost>> processes_;
  std::unique_ptr<ProcessGroup> group_;
};

}  // namespace weft
