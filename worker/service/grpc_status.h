// Our statuses as gRPC's. Included by worker/service only: it shows gRPC.
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
