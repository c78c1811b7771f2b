// The kinds of messages that a coordinator and workers exchange on the data plane
// (common/transport/message.h).
//
//   kind     header.step           header.id        payload
//   kExecute steps of that worker  0                proto::StepRequest
//   kReply   as the request        0                proto::StepReply
//   kCancel  as the request        0                nothing
//   kEdge    steps of the session  edge of the plan the tensor, packed
//   kProbe   0                     anything         common/transport/link_probe.h
//   kCollective steps of the session (collective, ranks) a range of values, as they travel
//   kWeights transfers, by number  piece of it      rpc_backend/protocol/weight_pieces.h
#pragma once

#include <cstdint>

namespace weft {

enum class MessageKind : uint32_t {
  kExecute = 0,
  kReply = 1,
  kCancel = 2,
  kEdge = 3,
  kProbe = 4,
  kCollective = 5,
  kWeights = 6,
};

}  // namespace weft
