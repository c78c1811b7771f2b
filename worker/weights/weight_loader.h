// Fills a session's weights: in place from a file that this machine sees, from the cache, or piece
// by piece from what the coordinator sends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "worker/weights/buffer_table.h"
#include "worker/weights/model_files.h"
#include "worker/weights/weight_cache.h"

namespace weft {

enum class WeightOrigin : uint8_t { kFile, kCache, kStream };

struct LoadedItem {
  int32_t weight = 0;
  int64_t buffer = 0;
  int64_t offset = 0;
  WeightOrigin origin = WeightOrigin::kFile;
};

struct LoadResult {
  std::vector<LoadedItem> items;
  std::string remark;  // why a file was not used; empty: all were
};

// Called with bytes done and in all; false cancels.
using WeightProgress = std::function<bool(int64_t done, int64_t total)>;

// One per session. Thread-safe; a weight is written by one caller at a time.
class WeightLoader {
 public:
  // All outlive it; `cache` may be null.
  WeightLoader(absl::Span<Device* const> devices, BufferTable& buffers, ModelFiles& files,
               WeightCache* cache)
      : devices_(devices), buffers_(buffers), files_(files), cache_(cache) {}

  // Allocates and fills what can be filled here; the others (kStream) wait for Write. The manifest
  // was decoded with the number of devices. `ignore_files`: as if no path was visible. Errors:
  // RESOURCE_EXHAUSTED naming the weight, CANCELLED.
  absl::StatusOr<LoadResult> Load(const LoadManifest& manifest, bool ignore_files,
                                  const WeightProgress& progress);

  // The next bytes of a weight that Load left open. Errors: NOT_FOUND for another weight,
  // INVALID_ARGUMENT unless `offset` is where the last piece ended and all fits.
  absl::Status Write(int32_t weight, int64_t offset, absl::Span<const uint8_t> data);
  // The weight is complete. Errors: DATA_LOSS unless its bytes have that digest; the weight is then
  // open again from its start.
  absl::Status Finish(int32_t weight, const Sha256Digest& digest);

  // How many weights still wait for bytes.
  int64_t open_count();

 private:
  struct OpenWeight {
    std::shared_ptr<Buffer> buffer;
    std::string name;
    Sha256Digest key = {};
    int64_t bytes = 0;  // of the content
    int64_t done = 0;
    Sha256 digest;
    std::unique_ptr<WeightCache::Writer> writer;
  };
  class Run;

  absl::Span<Device* const> devices_;
  BufferTable& buffers_;
  ModelFiles& files_;
  WeightCache* const cache_;
  Mutex mutex_;
  absl::flat_hash_map<int32_t, std::unique_ptr<OpenWeight>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
