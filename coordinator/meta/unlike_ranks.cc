#include "coordinator/meta/unlike_ranks.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

std::string HowItComputes(const Device& device) {
  return absl::StrCat(device.name(), " (", AbslView(DeviceKindName(device.kind())), ", ",
                      device.arithmetic(), ")");
}

}  // namespace

std::string UnlikeRanks(absl::Span<Device* const> devices, absl::Span<const int32_t> ranks) {
  for (const int32_t rank : ranks) {
    const Device& first = *devices[ranks[0]];
    const Device& other = *devices[rank];
    if (other.kind() == first.kind() && other.arithmetic() == first.arithmetic()) continue;
    return absl::StrCat(HowItComputes(other), " rounds unlike ", HowItComputes(first));
  }
  return "";
}

bool Chooses(Op op) { return op == Op::kTopK || op == Op::kArgMax; }

}  // namespace weft
