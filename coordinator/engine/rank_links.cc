#include "coordinator/engine/rank_links.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

// The slowest of those that were added.
class SlowestLink {
 public:
  void Add(const LinkModel& link) {
    if (!slowest_.has_value()) slowest_ = link;
    slowest_->latency_us = std::max(slowest_->latency_us, link.latency_us);
    slowest_->bytes_per_s = std::min(slowest_->bytes_per_s, link.bytes_per_s);
  }
  LinkModel Or(const LinkModel& otherwise) const { return slowest_.value_or(otherwise); }

 private:
  std::optional<LinkModel> slowest_;
};

LinkModels LinksOf(const MetaDevice& group, absl::Span<const HostLink> known) {
  absl::flat_hash_map<std::string, std::string> machines;  // by host
  for (const Device* rank : group.ranks()) machines.emplace(rank->host(), rank->machine());
  SlowestLink inner;
  SlowestLink outer;
  for (const HostLink& link : known) {
    if (!(link.link.latency_us >= 0) || !(link.link.bytes_per_s > 0) || link.a == link.b) continue;
    const auto a = machines.find(link.a);
    const auto b = machines.find(link.b);
    if (a == machines.end() || b == machines.end()) continue;
    (a->second == b->second ? inner : outer).Add(link.link);
  }
  const LinkModels unknown;
  return {inner.Or(unknown.inner), outer.Or(unknown.outer)};
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
