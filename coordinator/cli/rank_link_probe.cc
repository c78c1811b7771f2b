#include "coordinator/cli/rank_link_probe.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

using HostSets = std::vector<absl::flat_hash_set<std::string>>;

// The hosts of each group.
HostSets HostsOfGroups(absl::Span<Device* const> devices) {
  HostSets sets;
  for (const Device* device : devices) {
    const auto* group = dynamic_cast<const MetaDevice*>(device);
    if (group == nullptr) continue;
    absl::flat_hash_set<std::string>& hosts = sets.emplace_back();
    for (const Device* rank : group->ranks()) hosts.insert(rank->host());
  }
  return sets;
}

bool SomeGroupHas(const HostSets& sets, const std::string& a, const std::string& b) {
  for (const absl::flat_hash_set<std::string>& hosts : sets) {
    if (hosts.contains(a) && hosts.contains(b)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<HostLink>> ProbeRankLinks(Fleet& fleet,
                                                     absl::Span<Device* const> devices,
                                                     Logger& logger) {
  std::vector<HostLink> links;
  const HostSets sets = HostsOfGroups(devices);
  if (sets.empty() || fleet.worker_count() == 0) return links;
  const SystemClock clock;
  const std::chrono::milliseconds time = fleet.worker(0).options().loss_after;
  const Clock::TimePoint end = clock.Now() + 4 * time;
  for (const FleetPair& pair : fleet.link().pairs()) {
    const std::string& a = fleet.hosts()[pair.a];
    const std::string& b = fleet.hosts()[pair.b];
    if (!SomeGroupHas(sets, a, b)) continue;
    if (clock.Now() >= end) {
      logger.Warning("not all links between ranks were measured: it takes too long");
      break;
    }
    const PairMeasurement measured = fleet.link().MeasureLinks({&pair, 1}, time)[0];
    RETURN_IF_ERROR(fleet.lost());
    if (!measured.status.ok()) {
      logger.Warning(StdView(absl::StrCat("the link of ", a, " and ", b,
                                          " was not measured: ", measured.status.message())));
      continue;
    }
    logger.Debug(StdView(absl::StrFormat("link of %s and %s, measured: %.1f us, %.3g GB/s, %s", a,
                                         b, measured.latency_us, measured.bytes_per_s / 1e9,
                                         measured.transport)));
    // As UCX calls the memory that processes share.
    const bool through_memory = absl::StrContains(measured.transport, "posix");
    links.push_back({a, b, {measured.latency_us, measured.bytes_per_s}, through_memory});
  }
  return links;
}

}  // namespace weft
