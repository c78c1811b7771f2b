#include "coordinator/engine/overlap.h"

#include <algorithm>
#include <string>

#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

// A half with fewer tokens takes nearly as long as the whole: weights are what it reads.
constexpr int64_t kLeastTokensInHalves = 64;

bool OverNetwork(const Device& one, const Device& other, absl::Span<const HostLink> known) {
  const std::string& a = one.host();
  const std::string& b = other.host();
  if (a == b) return false;
  const auto link = std::find_if(known.begin(), known.end(), [&](const HostLink& candidate) {
    return (candidate.a == a && candidate.b == b) || (candidate.a == b && candidate.b == a);
  });
  return link == known.end() ? one.machine() != other.machine() : !link->through_memory;
}

bool SomeRanksOverNetwork(const MetaDevice& group, absl::Span<const HostLink> known) {
  for (const Device* one : group.ranks()) {
    for (const Device* other : group.ranks()) {
      if (OverNetwork(*one, *other, known)) return true;
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
