// How long collectives took, by how they were done and how large they were.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/mutex.h"
#include "common/collectives/schedule.h"
#include "common/metrics/histogram.h"

namespace weft {

// An all-reduce by each of its algorithms, and all-gathers, which have one.
enum class CollectiveUse : uint8_t {
  kRecursiveDoubling,
  kByParts,
  kHostsFirstRecursiveDoubling,
  kHostsFirstByParts,
  kAllGather,
};
inline constexpr size_t kCollectiveUses = 5;

CollectiveUse UseOf(CollectiveAlgorithm algorithm);
// "all_gather", or the name of the algorithm with underscores.
std::string CollectiveUseText(CollectiveUse use);

// Classes of size: up to each of these bytes, and more.
inline constexpr std::array<int64_t, 4> kCollectiveSizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
inline constexpr size_t kCollectiveSizeClasses = kCollectiveSizes.size() + 1;
// "4KiB", "64KiB", "1MiB", "16MiB", "more".
const char* CollectiveSizeText(size_t size_class);

struct CollectiveCounts {
  // Seconds of one rank in one collective, waiting for others included.
  std::array<std::array<WorkHistogram, kCollectiveSizeClasses>, kCollectiveUses> seconds;
  int64_t local_bytes = 0;  // between ranks of this process
};

// Any thread.
class CollectiveMeter {
 public:
  // `bytes`: of the whole vector on the wire.
  void Add(CollectiveUse use, int64_t bytes, double seconds, int64_t local_bytes);
  CollectiveCounts counts() const;

 private:
  mutable Mutex mutex_;
  CollectiveCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
