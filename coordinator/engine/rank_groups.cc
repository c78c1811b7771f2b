#include "coordinator/engine/rank_groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/placement/layer_assignment.h"

namespace weft {
namespace {

int64_t RanksOfAGroup(int64_t holders, const PlacementOptions& placement) {
  if (placement.tensor_ranks > 0) return placement.tensor_ranks;
  // A number of groups that does not divide them is refused with both numbers.
  return CeilDivide(holders, std::max<int64_t>(placement.layer_groups, 1));
}

absl::Status CheckRanks(absl::Span<Device* const> devices, const std::vector<int32_t>& holders,
                        const PlacementOptions& placement, int64_t tensor_ranks) {
  const std::vector<double>& shares = placement.tensor_split;
  const auto count = static_cast<int64_t>(holders.size());
  if (count < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--split-mode tensor: one device holds layers, ", DeviceNames(devices, holders),
        "; list workers with --workers or start some with --local-workers"));
  }
  if (tensor_ranks < 1 || count % tensor_ranks != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--layout: groups of ", tensor_ranks, " of ",
                                                   count,
                                                   " devices: ", DeviceNames(devices, holders)));
  }
  if (placement.layer_groups > 0 && count / tensor_ranks != placement.layer_groups) {
    return absl::InvalidArgumentError(absl::StrCat("--layout: ", placement.layer_groups,
                                                   " groups of ", tensor_ranks, " of ", count,
                                                   " devices: ", DeviceNames(devices, holders)));
  }
  if (static_cast<int64_t>(shares.size()) > count) {
    return absl::InvalidArgumentError(absl::StrCat("--tensor-split: ", shares.size(),
                                                   " shares for ", count,
                                                   " devices: ", DeviceNames(devices, holders)));
  }
  return CheckShares(shares);
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<MetaDevice>>> GroupDevices(PlacedDevices& placed,
                                                                      PlacementOptions& placement) {
  std::vector<std::unique_ptr<MetaDevice>> groups;
  if (placement.split_mode != SplitMode::kTensor) return groups;
  const std::vector<Device*> devices = placed.devices;
  const std::vector<int32_t> holders = LayerDevices(devices);
  const std::vector<double> shares = placement.tensor_split;
  const int64_t tensor_ranks = RanksOfAGroup(static_cast<int64_t>(holders.size()), placement);
  RETURN_IF_ERROR(CheckRanks(devices, holders, placement, tensor_ranks));
  placed.devices.clear();
  placed.rank_shares.clear();
  placement.tensor_split.clear();
  absl::flat_hash_set<int32_t> taken;
  absl::flat_hash_set<std::string> hosts;
  for (size_t first = 0; first < holders.size(); first += static_cast<size_t>(tensor_ranks)) {
    std::vector<Device*> ranks;
    std::vector<double> rank_shares;
    for (size_t i = first; i < first + static_cast<size_t>(tensor_ranks); ++i) {
      ranks.push_back(devices[holders[i]]);
      rank_shares.push_back(shares.empty() ? 1 : i < shares.size() ? shares[i] : 0);
      taken.insert(holders[i]);
      hosts.insert(ranks.back()->host());
    }
    const double sum = std::accumulate(rank_shares.begin(), rank_shares.end(), 0.0);
    if (sum <= 0 || !std::isfinite(sum)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tensor-split: the group of ", ranks.front()->name(), " has no share"));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<MetaDevice> group,
                     MetaDevice::Create(absl::StrCat("tp", groups.size()), ranks));
    placed.devices.push_back(group.get());
    placed.rank_shares.push_back(std::move(rank_shares));
    placement.tensor_split.push_back(sum);
    groups.push_back(std::move(group));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool beside =
        devices[i]->kind() == DeviceKind::kAccelerator && hosts.contains(devices[i]->host());
    if (taken.contains(static_cast<int32_t>(i)) || beside) continue;
    placed.devices.push_back(devices[i]);
    placed.rank_shares.emplace_back();
  }
  return groups;
}

}  // namespace weft
