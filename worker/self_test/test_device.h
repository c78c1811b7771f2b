// The self-test of a device when its worker starts (decision 11): every op in every type that the
// device says it supports, on small graphs, against the oracle. Drivers, compilers and processors
// differ; a kernel that is right where it was written may be wrong here.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "worker/self_test/quarantine.h"

namespace weft {

struct SelfTestOptions {
  uint64_t seed = 1;  // of the data
  std::chrono::milliseconds deadline{60000};
};

// What `device` computes wrong, in its own memory, on one command stream. An error of the device
// counts as wrong, and so does lack of memory; a fresh stream goes on with the next case.
//
// Errors: those of opening a stream; DEADLINE_EXCEEDED naming the op if the device does not end in
// time. A call into a device cannot be ended from outside, so the thread that waits for it is left
// behind: after DEADLINE_EXCEEDED, and only then, `device` must never be destroyed.
absl::StatusOr<Quarantine> TestDevice(Device& device, const SelfTestOptions& options = {});

}  // namespace weft
