// The request and the reply of a step, as payloads of data-plane messages (proto/step.proto). The
// step's number, its session and its epoch are in the message's header.
//
// Both sides keep their objects from step to step; then a steady state allocates nothing but
// outputs, and inputs are copied once, into the message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/program/program_host.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// A step to run, as it travels. The deadline counts from its arrival.
struct StepRequest {
  InstanceId instance{0};
  int64_t deadline_ms = 0;
  // Decoded: the inputs point into the message, which must outlive them; `step` and `deadline` do
  // not travel and are left as they were.
  StepInput input;
};

// Replaces `bytes`, whose memory is used again.
void EncodeStepRequest(const StepRequest& request, std::vector<uint8_t>& bytes);
// Errors: INVALID_ARGUMENT naming field and value; then `request` holds rubbish.
absl::Status DecodeStepRequest(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                               StepRequest& request);

// What became of it.
struct StepReply {
  absl::Status status;
  StepOutput output;  // meaningful if status is OK
};

void EncodeStepReply(const StepReply& reply, std::vector<uint8_t>& bytes);
// The returned status is that of decoding: INVALID_ARGUMENT naming field and value; then `reply`
// holds rubbish.
absl::Status DecodeStepReply(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                             StepReply& reply);

}  // namespace weft
