#include "coordinator/cluster/known_digests.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"

namespace weft {

KnownDigests::KnownDigests(const GgufFile& model, Logger& logger) {
  for (int32_t i = 0; i < model.file_count(); ++i) {
    absl::StatusOr<WeightDigests> read = ReadWeightDigests(model.file(i).path());
    if (absl::IsNotFound(read.status())) continue;
    absl::Status status = read.status();
    if (status.ok()) status = CheckDigestsFit(*read, model, i);
    if (status.ok()) {
      Add(i, *std::move(read));
    } else {
      logger.Warning(StdView(absl::StrCat("digests are not used: ", status.message())));
    }
  }
}

void KnownDigests::Add(int32_t file, WeightDigests digests) {
  for (TensorDigests& tensor : digests.tensors) {
    const std::pair<int32_t, int64_t> place(file, tensor.offset);
    tensors_.emplace(place, std::move(tensor));
  }
}

std::vector<Sha256Digest> KnownDigests::Of(absl::Span<const RemoteWeightSlice> slices) const {
  std::vector<Sha256Digest> digests;
  for (size_t i = 0; i < slices.size(); ++i) {
    const RemoteWeightSlice& slice = slices[i];
    auto found = tensors_.upper_bound({slice.file, slice.offset});
    if (found == tensors_.begin()) return {};
    const auto& [place, tensor] = *--found;
    const int64_t begin = slice.offset - tensor.offset;
    const int64_t end = begin + slice.bytes;
    if (place.first != slice.file || end > tensor.bytes) return {};
    const bool from_piece = begin % kDigestChunkBytes == 0;
    const bool to_piece = end % kDigestChunkBytes == 0 || end == tensor.bytes;
    const bool fills = i + 1 == slices.size() || slice.bytes % kDigestChunkBytes == 0;
    if (!from_piece || !to_piece || !fills) return {};
    digests.insert(digests.end(), tensor.chunks.begin() + begin / kDigestChunkBytes,
                   tensor.chunks.begin() + CeilDivide(end, kDigestChunkBytes));
  }
  return digests;
}

}  // namespace weft
