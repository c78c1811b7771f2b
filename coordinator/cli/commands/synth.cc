#include "coordinator/cli/commands/synth.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_writer.h"
#include "coordinator/cli/synth/random_blocks.h"

namespace weft {
namespace {

// The generator of one tensor: apart from those of the others, so that a tensor's values depend on
// its place in the file and the seed alone.
Random TensorRandom(uint64_t seed, size_t tensor_index) {
  Random mixed(seed);
  const uint64_t base = mixed.Next();
  return Random(Random(base ^ tensor_index * 0xD1342543DE82EF95u).Next());
}

// About a mebibyte in whole blocks.
size_t PieceBytes(DType dtype) {
  const size_t block = static_cast<size_t>(GetDTypeInfo(dtype).block_bytes);
  return ((size_t{1} << 20) / block) * block;
}

class ModelWriter {
 public:
  ModelWriter(const SynthOptions& options, const SynthPlan& plan, GgufWriter& writer)
      : options_(options), plan_(plan), writer_(writer) {
    for (const SynthTensor& tensor : plan.tensors) bytes_total_ += TensorBytes(tensor);
  }

  absl::Status WriteAll() {
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      const SynthTensor& tensor = plan_.tensors[i];
      Random random = TensorRandom(options_.seed, i);
      const absl::Status status =
          tensor.mean != 0.0 ? WriteVector(tensor, random) : WriteBlocks(tensor, random);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(tensor.name, ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  static int64_t TensorBytes(const SynthTensor& tensor) {
    return RowByteSize(tensor.layout) * RowCount(tensor.layout);
  }

  absl::Status WriteBlocks(const SynthTensor& tensor, Random& random) {
    ASSIGN_OR_RETURN(const RandomBlocks blocks,
                     RandomBlocks::Create(tensor.layout.dtype, tensor.deviation));
    int64_t left = TensorBytes(tensor);
    while (left > 0) {
      piece_.resize(std::min(PieceBytes(tensor.layout.dtype), static_cast<size_t>(left)));
      blocks.Fill(random, absl::MakeSpan(piece_));
      RETURN_IF_ERROR(AppendPiece());
      left -= static_cast<int64_t>(piece_.size());
    }
    return absl::OkStatus();
  }

  // Norms: short, F32, and not about zero.
  absl::Status WriteVector(const SynthTensor& tensor, Random& random) {
    piece_.resize(static_cast<size_t>(TensorBytes(tensor)));
    for (size_t i = 0; i < piece_.size(); i += sizeof(float)) {
      const auto value = static_cast<float>(tensor.mean + tensor.deviation * random.Normal());
      std::memcpy(&piece_[i], &value, sizeof(value));
    }
    return AppendPiece();
  }

  absl::Status AppendPiece() {
    RETURN_IF_ERROR(writer_.Append(piece_));
    bytes_done_ += static_cast<int64_t>(piece_.size());
    if (options_.progress) options_.progress(bytes_done_, bytes_total_);
    return absl::OkStatus();
  }

  const SynthOptions& options_;
  const SynthPlan& plan_;
  GgufWriter& writer_;
  int64_t bytes_total_ = 0;
  int64_t bytes_done_ = 0;
  std::vector<uint8_t> piece_;
};

}  // namespace

absl::Status WriteSyntheticModel(const SynthOptions& options) {
  ASSIGN_OR_RETURN(const SynthPlan plan, MakeSynthPlan(options.model));
  std::vector<GgufTensorSpec> specs;
  specs.reserve(plan.tensors.size());
  for (const SynthTensor& tensor : plan.tensors) specs.push_back({tensor.name, tensor.layout});
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufWriter> writer,
                   GgufWriter::Create(options.path, plan.metadata, std::move(specs)));
  RETURN_IF_ERROR(ModelWriter(options, plan, *writer).WriteAll());
  return writer->Finish();
}

}  // namespace weft
