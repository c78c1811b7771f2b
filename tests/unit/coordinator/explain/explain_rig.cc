#include "tests/unit/coordinator/explain/explain_rig.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/commands/synth.h"

namespace weft {
namespace {

[[noreturn]] void Abort(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::abort();
}

std::string HostOf(const std::string& name) { return name.substr(0, name.find('.')); }

}  // namespace

ExplainModel::ExplainModel(int64_t layers, int64_t experts, bool tied) {
  SynthOptions options;
  options.path = folder.File("model.gguf");
  options.model.type = "Q8_0";
  options.model.tied_output = tied;
  SynthShape& shape = options.model.shape;
  shape.embedding_length = 64;
  shape.layer_count = layers;
  shape.head_count = 4;
  shape.head_count_kv = 2;
  shape.feed_forward_length = 128;
  shape.vocabulary_size = 512;
  shape.head_length = 32;
  if (experts > 0) {
    options.model.architecture = "qwen3moe";
    shape.expert_count = experts;
    shape.expert_used_count = 2;
  }
  const absl::Status written = WriteSyntheticModel(options);
  if (!written.ok()) Abort(written);
  auto opened = GgufFile::Open(options.path);
  if (!opened.ok()) Abort(opened.status());
  file = *std::move(opened);
  auto made = Model::Create(*file);
  if (!made.ok()) Abort(made.status());
  model = *std::move(made);
}

ExplainDevices& ExplainDevices::Gpu(const std::string& name, int64_t memory_bytes) {
  NullDeviceOptions options;
  options.name = name;
  options.host = HostOf(name);
  options.memory_bytes = memory_bytes;
  options.capabilities.async = true;
  options.capabilities.events = true;
  options.offload_batch = kDefaultOffloadBatch;
  return Add(std::move(options));
}

ExplainDevices& ExplainDevices::Cpu(const std::string& name, int64_t memory_bytes) {
  NullDeviceOptions options;
  options.name = name;
  options.host = HostOf(name);
  options.kind = DeviceKind::kCpu;
  options.memory_bytes = memory_bytes;
  options.capabilities.host_memory = true;
  return Add(std::move(options));
}

ExplainDevices& ExplainDevices::BlasAndCpu(const std::string& host) {
  Cpu(host + ".cpu0");
  NullDeviceOptions options;
  options.name = host + ".blas0";
  options.host = host;
  options.kind = DeviceKind::kAccelerator;
  options.shares_memory_of = list_.back();
  options.reads_host_memory = true;
  options.supports = [](const Graph& graph, NodeId id) -> Support {
    const Node& node = graph.node(id);
    const bool takes = node.op == Op::kMulMat && graph.layout(node.sources[0]).dtype == DType::kF32;
    return takes ? absl::OkStatus() : absl::UnimplementedError("products of F32 weights only");
  };
  Add(std::move(options));
  std::swap(list_[list_.size() - 2], list_.back());
  return *this;
}

ExplainDevices& ExplainDevices::Add(NullDeviceOptions options) {
  owned_.push_back(std::make_unique<NullDevice>(std::move(options)));
  list_.push_back(owned_.back().get());
  return *this;
}

ExplainReport Explained(const ExplainModel& model, const ExplainDevices& devices,
                        ExplainOptions options) {
  if (options.batch == 512) options.batch = 64;
  if (options.context == 4096) options.context = 256;
  auto report = MakeExplainReport(*model.model, devices.list(), options);
  if (!report.ok()) Abort(report.status());
  return *std::move(report);
}

const ExplainRemark* FindRemark(const ExplainReport& report, const std::string& code) {
  for (const ExplainRemark& remark : report.remarks) {
    if (remark.code == code) return &remark;
  }
  return nullptr;
}

}  // namespace weft
