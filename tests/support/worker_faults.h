// Faults of a worker process on demand, for tests of what its coordinator does then.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace weft {

// Takes the text of --fault VERB:ACTION[:COUNT] and plants it in every gRPC server that this
// process starts from now on, and in what WithPlantedFault makes. VERB is an rpc of
// proto/worker.proto or a kind of rpc_backend/protocol/message_kinds.h (kExecute), counted by its
// messages in either direction. ACTION happens at the COUNT-th of them (the first if left out),
// once:
//   kill, stop  the process sends itself SIGKILL, SIGSTOP
//   error       the call ends with an error, whatever it did (rpcs only)
//   garbage     the reply is bytes that are no message
//   corrupt     the first byte of the message's payload is another one (kinds that it sends)
//   count       nothing
// Either way a line "fault: VERB ACTION" goes to stderr first. Errors: INVALID_ARGUMENT.
absl::Status PlantFault(std::string_view text);

}  // namespace weft
