// Whether the sums of a tensor split travel while their ranks compute something else.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/engine/rank_links.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// kOn or kOff for what was asked for. kAuto: on where ranks of a group in `devices` reach each
// other over a network, as `known` says of the pairs of their hosts (one that it leaves out is
// taken for a network unless they are on one machine). Through the memory of one machine there is
// little to wait for, and halves of a step take longer than the whole (docs/performance.md).
OverlapPolicy ResolveOverlap(OverlapPolicy asked, absl::Span<Device* const> devices,
                             absl::Span<const HostLink> known);

// Whether a step of so many tokens is computed in two halves (GraphShape::halves), one while the
// other's sums travel. `options.overlap` is resolved; kAuto counts as off.
bool InHalves(const PlanOptions& options, const HeldSlices& held, int64_t tokens);

}  // namespace weft
