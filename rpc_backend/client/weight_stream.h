// The stream that sends weights to a worker, written to from one thread.
//
// Not the synchronous one of gRPC, which ends the process when the reply is no message.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include "common/base/mutex.h"
#include "proto/worker.grpc.pb.h"

namespace weft {

class WeightStream final : public grpc::ClientWriteReactor<proto::WeightChunk> {
 public:
  // `context` outlives the stream.
  WeightStream(proto::Worker::Stub& stub, grpc::ClientContext& context);
  // After Finish.
  ~WeightStream() override = default;

  // Waits until the chunk is on its way. False: the stream is broken, Finish says why.
  bool Write(const proto::WeightChunk& chunk);
  // Ends the stream and waits for what the worker says of it: at once if it is broken or cancelled.
  // To be called once.
  grpc::Status Finish();
  // After Finish; empty unless the worker sent one.
  const proto::SendWeightsReply& reply() const { return reply_; }

 private:
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  proto::SendWeightsReply reply_;
  bool broken_ = false;  // of the writer's thread
  Mutex mutex_;
  CondVar changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool written_ ABSL_GUARDED_BY(mutex_) = false;  // how the last write ended
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
