// Runs a case on a device and on the oracle, and says how far apart they are.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/device/device.h"
#include "worker/self_test/test_case.h"

namespace weft::self_test {

// The bytes of each leaf of a case, in the order of TestCase::leafs.
using CaseData = std::vector<std::vector<uint8_t>>;
CaseData DataOf(const TestCase& test_case, Random& random);

// True if the result may lie where the first source does, which is then tested as well.
bool RunsInPlace(const TestCase& test_case);

// All bytes of the tensor that holds the result, computed in memory of the device's own type, which
// need not be the host's. Whatever `backend` was given is done when it returns. Errors: the
// device's.
absl::StatusOr<std::vector<uint8_t>> RunOnDevice(Device& device, Backend& backend,
                                                 const TestCase& test_case, const CaseData& data,
                                                 bool in_place);
// The same by common/cpu/reference.
absl::StatusOr<std::vector<uint8_t>> RunOnOracle(const TestCase& test_case, const CaseData& data);

// How far `got` is from `want`, both of packed tensors of `layout`: the root mean square of the
// differences of all elements, or a sixth of the largest, so that one wrong element among many
// shows; in units of the root mean square of `want`. Infinite where `got` is not finite. Integers:
// the share of those that differ.
double ErrorOf(const TensorLayout& layout, const std::vector<uint8_t>& got,
               const std::vector<uint8_t>& want);

}  // namespace weft::self_test
