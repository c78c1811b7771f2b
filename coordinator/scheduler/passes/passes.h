// The five passes in order (spec B.4, decision 21).
#pragma once

#include <memory>

#include "coordinator/scheduler/pass.h"

namespace weft {

// 1: what memory, weights and the user fix.
std::unique_ptr<Pass> MakeAssignPinnedPass();
// 2: assignments spread to neighbours, those of accelerators first.
std::unique_ptr<Pass> MakeExpandPass();
// 3: better devices with the same memory take over; what is left goes where its sources are.
std::unique_ptr<Pass> MakeUpgradeOrGuessPass();
// 4: views follow their roots, free leafs their readers.
std::unique_ptr<Pass> MakeInheritPass();
// 5: cut into splits, and list what each must copy.
std::unique_ptr<Pass> MakeCutPass();

}  // namespace weft
