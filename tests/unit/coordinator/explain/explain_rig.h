// Small models and null devices for tests of explain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/device/null_device.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/models/model.h"
#include "tests/support/temporary_folder.h"

namespace weft {

// A random model; `experts` 0: a dense llama, else a qwen3moe. Weights are Q8_0.
struct ExplainModel {
  TemporaryFolder folder;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;

  explicit ExplainModel(int64_t layers, int64_t experts = 0, bool tied = false);
};

// Null devices, in the order of the scheduler's list. GPUs are asynchronous with events and want
// batches of 32.
class ExplainDevices {
 public:
  // Named "HOST.KINDn", as "w0.gpu0".
  ExplainDevices& Gpu(const std::string& name, int64_t memory_bytes = int64_t{8} << 30);
  ExplainDevices& Cpu(const std::string& name, int64_t memory_bytes = int64_t{64} << 30);
  ExplainDevices& Add(NullDeviceOptions options);
  // HOST.blas0, which takes products of F32 weights in the CPU's memory, and HOST.cpu0.
  ExplainDevices& BlasAndCpu(const std::string& host);

  absl::Span<Device* const> list() const { return list_; }

 private:
  std::vector<std::unique_ptr<NullDevice>> owned_;
  std::vector<Device*> list_;
};

// MakeExplainReport with a small batch and context; aborts where it fails.
ExplainReport Explained(const ExplainModel& model, const ExplainDevices& devices,
                        ExplainOptions options = {});

// The remark of that code, or null.
const ExplainRemark* FindRemark(const ExplainReport& report, const std::string& code);

}  // namespace weft
