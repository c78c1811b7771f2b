// Digests of what workers load, from the files that `weft digest` wrote beside the model.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/digest/sha256.h"
#include "common/digest/weight_digests.h"
#include "common/gguf/gguf_file.h"
#include "rpc_backend/client/remote_weights.h"

namespace weft {

class KnownDigests {
 public:
  KnownDigests() = default;
  // Of each part of the model that has such a file; one that does not fit is logged and not used.
  KnownDigests(const GgufFile& model, Logger& logger);

  void Add(int32_t file, WeightDigests digests);
  // SHA-256 of each MiB of what the slices make up, one behind the other. Empty where they are not
  // known, and where a MiB would have parts of two of a tensor.
  std::vector<Sha256Digest> Of(absl::Span<const RemoteWeightSlice> slices) const;

 private:
  std::map<std::pair<int32_t, int64_t>, TensorDigests> tensors_;  // by file and offset
};

}  // namespace weft
