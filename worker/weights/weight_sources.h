// Where this machine has the bytes of weights: files that it sees, its cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "worker/weights/model_files.h"
#include "worker/weights/weight_cache.h"

namespace weft {

// What the cache is asked for.
WeightKey KeyOf(const LoadManifest& manifest, const WeightEntry& weight);

// One weight's bytes, in memory or mapped.
struct WeightBytes {
  std::vector<absl::Span<const uint8_t>> parts;     // one behind the other
  std::vector<std::shared_ptr<const void>> memory;  // of the parts

  // Adds the parts of [offset, offset + bytes) to `parts`.
  void Take(int64_t offset, int64_t bytes, std::vector<absl::Span<const uint8_t>>& parts) const;
};

// For one manifest, which outlives it.
class WeightSources {
 public:
  // `cache` may be null. Opens the files, unless they are to be ignored.
  WeightSources(const LoadManifest& manifest, bool ignore_files, ModelFiles& files,
                WeightCache* cache);

  // Why a file was not used; empty: all were, or none was to be.
  const std::string& remark() const { return remark_; }
  // Null if it is not here.
  const std::shared_ptr<const ModelFiles::File>& file(int32_t index) const { return files_[index]; }
  bool FilesAreHere(const WeightEntry& weight) const;
  // Whether Find would find it.
  bool Has(const WeightEntry& weight) const;
  // From files, or from the cache, whose pieces are still to be checked. Errors: NOT_FOUND naming
  // the weight.
  absl::StatusOr<WeightBytes> Find(const WeightEntry& weight) const;

 private:
  // That the bytes of files will be read soon.
  void Announce(absl::Span<const FileSlice> slices) const;

  const LoadManifest& manifest_;
  WeightCache* const cache_;
  std::vector<std::shared_ptr<const ModelFiles::File>> files_;
  std::string remark_;
};

}  // namespace weft
