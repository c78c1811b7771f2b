// What must hold of every plan, checked against the devices' own answers rather than the
// scheduler's memory of them.
#pragma once

#include <string>

#include "coordinator/scheduler/execution_plan.h"

namespace weft {

// What is wrong with `plan`, empty if nothing:
//   INV-B1  every node has a device, every executed one a device that supports it or its plain
//   form,
//           and every node of the scheduled graph one that supports it as it is
//   INV-B2  in the scheduled graph every source lies in memory that the reader's device supports
//   INV-B3  pins are kept
//   INV-B4  between two nodes on one accelerator, what that could run is there too: where both were
//           placed by pass 1 or by spreading (an op that changes its source only by pass 1),
//           nothing between them is placed by pass 1, and those between neither change their source
//           nor were upgraded. Holds where the device takes this batch, and the sweeps of
//           accelerators and their stop at processors are on.
//   INV-B6  the splits partition the nodes; one follows another on the same device only to copy
//   INV-B8  a tensor is copied into a memory once, and only for a reader that could not read it
//   no weight goes to another machine without a reason (weight_crossings.h)
//   staged bytes of a split are within the limit, unless one node needs them
//   INV-C1, C2, C3, C5 of its memory, which is planned anew as well
std::string PlanFault(const PlanContext& context, const ExecutionPlan& plan);

}  // namespace weft
