#include "common/program/collective_meter.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "common/base/absl_view.h"

namespace weft {

static_assert(kCollectiveUses == kCollectiveAlgorithmCount + 1);

CollectiveUse UseOf(CollectiveAlgorithm algorithm) {
  return static_cast<CollectiveUse>(static_cast<uint8_t>(algorithm));
}

std::string CollectiveUseText(CollectiveUse use) {
  if (use == CollectiveUse::kAllGather) return "all_gather";
  const std::string_view name =
      CollectiveAlgorithmName(static_cast<CollectiveAlgorithm>(static_cast<uint8_t>(use)));
  return absl::StrReplaceAll(AbslView(name), {{", ", "_"}, {" ", "_"}, {"-", "_"}});
}

const char* CollectiveSizeText(size_t size_class) {
  constexpr std::array<const char*, kCollectiveSizeClasses> kTexts = {"4KiB", "64KiB", "1MiB",
                                                                      "16MiB", "more"};
  return kTexts[size_class];
}

void CollectiveMeter::Add(CollectiveUse use, int64_t bytes, double seconds, int64_t local_bytes) {
  const auto size_class = static_cast<size_t>(
      std::lower_bound(kCollectiveSizes.begin(), kCollectiveSizes.end(), bytes) -
      kCollectiveSizes.begin());
  MutexLock lock(mutex_);
  counts_.seconds[static_cast<size_t>(use)][size_class].Add(seconds);
  counts_.local_bytes += local_bytes;
}

CollectiveCounts CollectiveMeter::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace weft
