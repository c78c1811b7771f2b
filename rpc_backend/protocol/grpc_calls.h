// What every client of ours asks of gRPC. It shows gRPC: for sources only.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

namespace weft {

// A connection of its own for each channel, straight to the other side, where a call is made once:
// what may be repeated is known to who calls.
inline grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  return arguments;
}

// For every server of ours, as OwnConnection for every client: nobody of ours compresses, and gRPC
// unfolds a message whole before it looks at how large it is.
inline void RefuseCompressed(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

inline gpr_timespec GrpcDeadlineIn(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

}  // namespace weft
