// Messages that travel as bytes in others.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// Checks size and counts (CheckMessageBytes), then parses. `what` is for messages. Errors:
// RESOURCE_EXHAUSTED if it is too long; INVALID_ARGUMENT for the rest.
absl::Status ParseEmbedded(absl::string_view what, std::string_view bytes, const WireLimits& limits,
                           google::protobuf::Message& message);

}  // namespace weft
