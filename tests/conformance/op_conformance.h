// Runs the case table on any device and compares with the oracle.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "tests/conformance/op_case.h"

namespace weft {

// All bytes of the tensor that holds the case's result, computed by `device`, which need not share
// memory with the host.
absl::StatusOr<std::vector<uint8_t>> RunCase(Device& device, const OpCase& op_case);

// The same from the oracle.
absl::StatusOr<std::vector<uint8_t>> RunCaseOnOracle(const OpCase& op_case);

// Fails the current test for every case whose result is not within its tolerance of the oracle's.
// Cases that the device refuses are counted and printed.
// Returns the number of refusals.
int CheckCases(Device& device, absl::Span<const OpCase> cases);

}  // namespace weft
