// The bounds of every field of every control-plane message, in one table (message_rules.cc), and
// the check that walks a message of either direction against it. Requests are checked by the worker
// and replies by the coordinator, before anything else looks at them.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "rpc_backend/protocol/limits.h"

namespace google::protobuf {
class Message;
class Descriptor;
}  // namespace google::protobuf

namespace weft {

// Numbers in range, enumerators known, texts short and of one line of clean UTF-8, lists short,
// sub-messages likewise. Bytes that hold a message of their own (graph, program, manifest) are only
// measured. Errors: INVALID_ARGUMENT "ConnectPeersRequest.peers[3].token: 15 bytes, want 16".
absl::Status CheckMessage(const google::protobuf::Message& message, const WireLimits& limits = {});

// The same bounds on lists, and one on the number of sub-messages, over the bytes of a message that
// was not parsed yet; takes no memory. Parsing what passes takes memory in proportion to what the
// bounds allow.
absl::Status CheckMessageBytes(const google::protobuf::Descriptor& type, std::string_view bytes,
                               const WireLimits& limits = {});

// Fields of `type` and of the messages in it that the table has no row for; empty where it is
// complete. For tests.
std::string MissingMessageRules(const google::protobuf::Descriptor& type);

}  // namespace weft
