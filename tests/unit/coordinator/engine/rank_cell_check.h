// Whether a model that is cut over ranks answers as one that is not, by decision 20.
#pragma once

#include <string>

#include "tests/support/golden_model.h"
#include "tests/unit/coordinator/engine/ranked_model.h"

namespace weft {

// Of normalized errors. Sums over ranks round differently; products of quantised weights do not,
// but for their order.
double RankTolerance(const GoldenModel& golden);

// Logits, hidden states and greedy tokens of the model `name` of tests/data/models; fails the test
// otherwise.
void CheckCell(const std::string& name, const RankCell& cell);

}  // namespace weft
