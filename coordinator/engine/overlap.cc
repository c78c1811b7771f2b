#include "coordinator/engine/overlap.h"

#include <algorithm>
#include <string>

#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

// A half with fewer tokens takes nearly as long as the whole: weights are what it reads.
constexpr int64_t kLeastTokensInHalves = 64;

bool OverNetwork(const std::string& a, const std::string& b, absl::Span<const HostLink> known) {
  if (a == b) return false;
  return std::none_of(known.begin(), known.end(), [&](const HostLink& link) {
    const bool is_it = (link.a == a && link.b == b) || (link.a == b && link.b == a);
    return is_it && link.through_memory;
  });
}

bool SomeRanksOverNetwork(const MetaDevice& group, absl::Span<const HostLink> known) {
  for (const Device* one : group.ranks()) {
    for (const Device* other : group.ranks()) {
      if (OverNetwork(one->host(), other->host(), known)) return true;
    }
  }
  return false;
}

}  // namespace

OverlapPolicy ResolveOverlap(OverlapPolicy asked, absl::Span<Device* const> devices,
                             absl::Span<const HostLink> known) {
  if (asked != OverlapPolicy::kAuto) return asked;
  const bool helps = std::any_of(devices.begin(), devices.end(), [&](const Device* device) {
    const auto* group = dynamic_cast<const MetaDevice*>(device);
    return group != nullptr && SomeRanksOverNetwork(*group, known);
  });
  return helps ? OverlapPolicy::kOn : OverlapPolicy::kOff;
}

bool InHalves(const PlanOptions& options, const HeldSlices& held, int64_t tokens) {
  return options.overlap == OverlapPolicy::kOn && held.split && tokens >= kLeastTokensInHalves &&
         tokens % 2 == 0;
}

}  // namespace weft
