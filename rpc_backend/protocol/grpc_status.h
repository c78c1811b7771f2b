// Our statuses as gRPC's. It shows gRPC: for sources only.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(WireCode(status)), WireMessage(status)};
}

}  // namespace weft
