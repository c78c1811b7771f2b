// The request and the reply of a step, as payloads of data-plane messages (proto/step.proto). The
// step's number, its session and its epoch are in the message's header.
//
// Both sides keep their objects from step to step; then a steady state allocates nothing, and what
// is large is not copied here: it leaves from where it lies (StepMessage), and arrives as spans.
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

// What became of it.
struct StepReply {
  absl::Status status;
  StepOutput output;  // meaningful if status is OK
};

// An encoded request or reply in parts, to be sent one behind the other: its own bytes, and between
// them inputs or outputs where they lie. Encode again to use its memory again.
class StepMessage {
 public:
  // The inputs and outputs must outlive the use of parts().
  void Encode(const StepRequest& request);
  void Encode(const StepReply& reply);

  absl::Span<const absl::Span<const uint8_t>> parts() const { return parts_; }

 private:
  void Start();
  void AddBytes(int field, absl::Span<const uint8_t> bytes);
  void Finish();

  // A span that stands after so many bytes of own_.
  struct Foreign {
    size_t after = 0;
    absl::Span<const uint8_t> bytes;
  };
  std::vector<uint8_t> own_;
  std::vector<Foreign> foreign_;
  std::vector<absl::Span<const uint8_t>> parts_;
};

// The same in one piece. Replaces `bytes`.
void EncodeStepRequest(const StepRequest& request, std::vector<uint8_t>& bytes);
// Errors: INVALID_ARGUMENT naming field and value; then `request` holds rubbish.
absl::Status DecodeStepRequest(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                               StepRequest& request);

void EncodeStepReply(const StepReply& reply, std::vector<uint8_t>& bytes);
// The returned status is that of decoding: INVALID_ARGUMENT naming field and value; then `reply`
// holds rubbish.
absl::Status DecodeStepReply(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                             StepReply& reply);

}  // namespace weft
