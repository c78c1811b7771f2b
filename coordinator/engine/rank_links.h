// How fast the ranks of a group reach each other, from what is known of pairs of hosts.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/collectives/algorithm_choice.h"
#include "common/device/device.h"

namespace weft {

// The connection of two hosts, by Device::host().
struct HostLink {
  std::string a;
  std::string b;
  LinkModel link;
  bool through_memory = false;  // of one machine, not over a network
};

// By device of `devices` (PlacedDevices::rank_links): for a group (MetaDevice) the largest latency
// and the least rate of the links between its hosts, as the slowest partner is waited for: inner
// of those between hosts of one machine (Device::machine()), outer of the others; the default where
// no such link is known (one without a rate is not).
std::vector<LinkModels> RankLinks(absl::Span<Device* const> devices,
                                  absl::Span<const HostLink> known);

}  // namespace weft
