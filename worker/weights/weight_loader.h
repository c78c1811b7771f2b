// Fills a session's weights: in place from a file that this machine sees, or from the cache; what
// is left is open for what peers and the coordinator send.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "worker/weights/buffer_table.h"
#include "worker/weights/file_check.h"
#include "worker/weights/model_files.h"
#include "worker/weights/open_weights.h"
#include "worker/weights/weight_cache.h"
#include "worker/weights/weight_sources.h"

namespace weft {

enum class WeightOrigin : uint8_t { kFile, kCache, kStream };

struct LoadedItem {
  int32_t weight = 0;
  int64_t buffer = 0;
  int64_t offset = 0;
  WeightOrigin origin = WeightOrigin::kFile;
  int64_t here = 0;  // of kStream: how many first bytes are there
};

struct LoadResult {
  std::vector<LoadedItem> items;
  std::string remark;  // why a file was not used; empty: all were
};

// Called with bytes done and in all; false cancels.
using WeightProgress = std::function<bool(int64_t done, int64_t total)>;

// One per session. Thread-safe.
class WeightLoader {
 public:
  // All outlive it; `cache` and `logger` may be null.
  WeightLoader(absl::Span<Device* const> devices, BufferTable& buffers, ModelFiles& files,
               WeightCache* cache, Logger* logger)
      : devices_(devices),
        buffers_(buffers),
        files_(files),
        cache_(cache),
        open_(cache),
        check_(files, logger) {}

  // Allocates and fills what can be filled here; the others (kStream) are open. Files are compared
  // in the background with digests that are known. The manifest was decoded with the number of
  // devices. `ignore_files`: as if no path was visible. Errors: RESOURCE_EXHAUSTED naming the
  // weight, CANCELLED.
  absl::StatusOr<LoadResult> Load(const LoadManifest& manifest, bool ignore_files,
                                  const WeightProgress& progress);

  OpenWeights& open() { return open_; }
  // Of files in use.
  FileCheck& check() { return check_; }
  // What this machine could give to others.
  WeightSources Sources(const LoadManifest& manifest, bool ignore_files) {
    return WeightSources(manifest, ignore_files, files_, cache_);
  }

 private:
  class Run;

  absl::Span<Device* const> devices_;
  BufferTable& buffers_;
  ModelFiles& files_;
  WeightCache* const cache_;
  OpenWeights open_;
  FileCheck check_;
};

}  // namespace weft
