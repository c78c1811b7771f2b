#include "tests/support/sparse_model.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/checked_math.h"
#include "common/gguf/gguf_writer.h"
#include "coordinator/cli/synth/synth_plan.h"

namespace weft {
namespace {

constexpr int64_t kAlignment = 32;  // of GGUF, unless a key says otherwise

template <typename T>
T ValueOrAbort(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::abort();
}

}  // namespace

SparseModel::SparseModel(std::string_view shape, int64_t layers) {
  SynthModel synth;
  synth.shape = ValueOrAbort(NamedSynthShape(shape));
  if (layers > 0) synth.shape.layer_count = layers;
  const SynthPlan plan = ValueOrAbort(MakeSynthPlan(synth));
  std::vector<GgufTensorSpec> tensors;
  tensors.reserve(plan.tensors.size());
  int64_t bytes = 0;
  for (const SynthTensor& tensor : plan.tensors) {
    tensors.push_back({tensor.name, tensor.layout});
    bytes += AlignUp(ByteExtent(tensor.layout).value_or(0), kAlignment);
  }
  const std::string header = ValueOrAbort(GgufHeaderBytes(plan.metadata, tensors));
  const std::string path = folder_.Write("sparse.gguf", header);
  std::filesystem::resize_file(path, header.size() + static_cast<size_t>(bytes));
  file_ = ValueOrAbort(GgufFile::Open(path));
  model_ = ValueOrAbort(Model::Create(*file_));
}

}  // namespace weft
