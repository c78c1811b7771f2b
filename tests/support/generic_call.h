// Calls of gRPC methods by their paths, with any bytes as message: what a server does with
// strangers, and with services whose messages the build does not have.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

namespace weft {

// The status of a call of "/package.Service/Method", 30 s at most; `reply`: the message that came,
// if the status is OK. Null: nobody wants it.
inline grpc::Status CallByPath(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& path, const std::string& request,
                               std::string* reply = nullptr) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer message(&slice, 1);
  const auto call = stub.PrepareUnaryCall(&context, path, message, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok() || reply == nullptr) return status;
  std::vector<grpc::Slice> slices;
  if (answer.Dump(&slices).ok()) {
    reply->clear();
    for (const grpc::Slice& part : slices) {
      reply->append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  return status;
}

}  // namespace weft
