#include "tests/unit/coordinator/placement/placement_rig.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/golden_model.h"

namespace weft {
namespace {

[[noreturn]] void Abort(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

NullDeviceOptions ParseSpec(const std::string& spec) {
  NullDeviceOptions options;
  const size_t colon = spec.find(':');
  options.name = spec.substr(0, colon);
  const size_t dot = options.name.find('.');
  options.host = options.name.substr(0, dot);
  const std::string kind = options.name.substr(dot + 1);
  if (absl::StartsWith(kind, "gpu")) options.kind = DeviceKind::kGpu;
  if (absl::StartsWith(kind, "blas")) options.kind = DeviceKind::kAccelerator;
  if (absl::StartsWith(kind, "cpu")) options.kind = DeviceKind::kCpu;
  if (absl::StartsWith(kind, "meta")) options.kind = DeviceKind::kMeta;
  options.memory_bytes = 0;
  if (colon != std::string::npos) {
    const bool small = absl::EndsWith(spec, "k");
    const std::string number = spec.substr(colon + 1, spec.size() - colon - 1 - (small ? 1 : 0));
    if (!absl::SimpleAtoi(number, &options.memory_bytes)) Abort(spec);
    options.memory_bytes <<= small ? 10 : 30;
  }
  return options;
}

}  // namespace

NullDevices::NullDevices(const std::vector<std::string>& specs) {
  for (const std::string& spec : specs) {
    options_.push_back(ParseSpec(spec));
    owned_.push_back(std::make_unique<NullDevice>(options_.back()));
    list_.push_back(owned_.back().get());
  }
}

int32_t NullDevices::Find(const std::string& name) const {
  for (size_t i = 0; i < list_.size(); ++i) {
    if (list_[i]->name() == name) return static_cast<int32_t>(i);
  }
  Abort(absl::StrCat("no device ", name));
}

void NullDevices::Refuse(const std::string& name,
                         std::function<Support(const Graph&, NodeId)> supports) {
  Change(name, [&](NullDeviceOptions& device) { device.supports = std::move(supports); });
}

void NullDevices::Change(const std::string& name,
                         const std::function<void(NullDeviceOptions&)>& change) {
  const int32_t at = Find(name);
  change(options_[at]);
  owned_[at] = std::make_unique<NullDevice>(options_[at]);
  list_[at] = owned_[at].get();
}

std::vector<std::string> WorkerGpus(int count) {
  std::vector<std::string> specs(count);
  for (int i = 0; i < count; ++i) specs[i] = absl::StrCat("w", i, ".gpu0:8");
  specs.emplace_back("local.cpu0:8");
  return specs;
}

std::vector<std::string> Texts(const std::vector<PlacementRemark>& remarks) {
  std::vector<std::string> texts;
  texts.reserve(remarks.size());
  for (const PlacementRemark& remark : remarks) texts.push_back(remark.text);
  return texts;
}

TestModel::TestModel(const std::string& name, uint32_t layers,
                     const std::function<void(EditableGguf&)>& edit) {
  EditableGguf gguf = EditableGguf::Read(TestDataFolder() + "/models/" + name + "/model.gguf");
  constexpr const char* kSecond = "blk.1.";
  const std::vector<GgufTensorSpec> tensors = gguf.tensors;
  for (uint32_t layer = 2; layer < layers; ++layer) {
    for (const GgufTensorSpec& tensor : tensors) {
      if (!absl::StartsWith(tensor.name, kSecond)) continue;
      gguf.AddZeros(absl::StrCat("blk.", layer, ".", tensor.name.substr(6)), tensor.layout.dtype,
                    tensor.layout.ne);
    }
  }
  const auto architecture = gguf.metadata.String("general.architecture");
  if (!architecture.ok()) Abort(std::string(architecture.status().message()));
  gguf.metadata.Set(std::string(*architecture) + ".block_count", layers);
  if (edit) edit(gguf);
  auto opened = GgufFile::Open(gguf.Write(folder.File("model.gguf")));
  if (!opened.ok()) Abort(std::string(opened.status().message()));
  file = *std::move(opened);
  auto made = Model::Create(*file);
  if (!made.ok()) Abort(std::string(made.status().message()));
  model = *std::move(made);
}

}  // namespace weft
