#include "coordinator/engine/rank_links.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

LinkModels LinksOf(const MetaDevice& group, absl::Span<const HostLink> known) {
  absl::flat_hash_set<std::string> hosts;
  for (const Device* rank : group.ranks()) hosts.insert(rank->host());
  LinkModels links;
  bool first = true;
  for (const HostLink& link : known) {
    if (!(link.link.latency_us >= 0) || !(link.link.bytes_per_s > 0)) continue;
    if (link.a == link.b || !hosts.contains(link.a) || !hosts.contains(link.b)) continue;
    LinkModel& outer = links.outer;
    outer.latency_us =
        first ? link.link.latency_us : std::max(outer.latency_us, link.link.latency_us);
    outer.bytes_per_s =
        first ? link.link.bytes_per_s : std::min(outer.bytes_per_s, link.link.bytes_per_s);
    first = false;
  }
  return links;
}

}  // namespace

std::vector<LinkModels> RankLinks(absl::Span<Device* const> devices,
                                  absl::Span<const HostLink> known) {
  std::vector<LinkModels> links;
  for (const Device* device : devices) {
    const auto* group = dynamic_cast<const MetaDevice*>(device);
    links.push_back(group == nullptr ? LinkModels{} : LinksOf(*group, known));
  }
  return links;
}

}  // namespace weft
