// A worker's gRPC server that does what a test says: honest by default, over memory of this
// process, with a real data plane over gRPC. It computes nothing; `execute` answers steps.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/transport/message_port.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "rpc_backend/protocol/step_codec.h"
#include "rpc_backend/protocol/weight_pieces.h"

namespace weft {

// Times that make tests short and leave slow machines enough.
RemoteWorkerOptions TestWorkerOptions(const std::string& address, const std::string& name = "w0");

inline constexpr int64_t kFakeSession = 4242;

class FakeWorker final : public proto::Worker::Service {
 public:
  FakeWorker();
  ~FakeWorker() override;

  const std::string& address() const { return address_; }

  // --- what a test may change before it connects ---

  std::function<void(proto::HelloReply&)> edit_hello;
  std::function<void(proto::SessionReply&)> edit_session;  // every reply
  std::function<void(proto::QuerySupportReply&)> edit_support;
  std::function<void(proto::QueryTensorBytesReply&)> edit_tensor_bytes;
  std::function<void(proto::AllocateBufferReply&)> edit_allocate;
  std::function<void(proto::ReadBufferReply&)> edit_read;
  std::function<void(proto::InstantiateReply&)> edit_instantiate;
  std::function<void(proto::StatisticsReply&)> edit_statistics;
  std::function<void(proto::LoadWeightsReply&)> edit_loaded;  // the last reply
  std::function<void(proto::FindWeightsReply&)> edit_found;
  std::function<void(proto::TakeWeightsReply&)> edit_taken;  // the last reply
  std::function<void(proto::OpenEpochReply&)> edit_epoch;
  // What a step answers; empty: nothing, for ever.
  std::function<StepReply(int64_t step, const StepRequest& request)> execute;
  // Status of a call by its name ("Hello"), instead of doing it.
  std::map<std::string, grpc::Status> fail;
  // Calls that do not return before they are cancelled.
  std::map<std::string, bool> hang;
  bool compress = false;                  // what it answers
  bool silent_session = false;            // reads the session's messages, but answers none
  bool files_visible = false;             // LoadWeights finds everything in files
  std::map<int32_t, int64_t> here;        // bytes of weights that an earlier load left
  std::map<int32_t, std::string> stored;  // contents that it gives to other workers, right or wrong
  int damaged_pieces = 0;                 // so many that come next it takes for damaged
  int given_up_takes = 0;                 // so many that come next it ends before anything came

  // --- what it saw ---

  int calls(const std::string& verb) const;
  // Waits until `verb` was called so often.
  bool AwaitCalls(const std::string& verb, int count) const;
  int open_sessions() const;
  bool AwaitSessions(int count) const;
  std::vector<std::string> buffers() const;  // contents
  std::string weight(int32_t id) const;      // as TakeWeights brought it
  std::vector<int64_t> cancelled_steps() const;
  bool AwaitCancelled(size_t count) const;

  // --- while connected ---

  void StopAnswering() { mute_ = true; }
  void EndSession(const std::string& farewell);
  // As if the process was killed: all connections break.
  void Die();

 private:
  struct Plane {
    uint32_t epoch = 0;
    int32_t coordinator = 0;
    std::unique_ptr<MessagePort> port;
    std::thread thread;
  };

  template <typename Work>
  grpc::Status Handle(const std::string& verb, grpc::ServerContext* context, const Work& work);
  // Until the call is cancelled or the worker dies.
  void AwaitCancel(grpc::ServerContext* context);
  void ServePort(const Plane& plane);

  grpc::Status Hello(grpc::ServerContext* context, const proto::HelloRequest* request,
                     proto::HelloReply* reply) override;
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<proto::SessionReply, proto::SessionRequest>* stream) override;
  grpc::Status OpenEpoch(grpc::ServerContext* context, const proto::OpenEpochRequest* request,
                         proto::OpenEpochReply* reply) override;
  grpc::Status ConnectPeers(grpc::ServerContext* context, const proto::ConnectPeersRequest* request,
                            proto::ConnectPeersReply* reply) override;
  grpc::Status QuerySupport(grpc::ServerContext* context, const proto::QuerySupportRequest* request,
                            proto::QuerySupportReply* reply) override;
  grpc::Status QueryTensorBytes(grpc::ServerContext* context,
                                const proto::QueryTensorBytesRequest* request,
                                proto::QueryTensorBytesReply* reply) override;
  grpc::Status AllocateBuffer(grpc::ServerContext* context,
                              const proto::AllocateBufferRequest* request,
                              proto::AllocateBufferReply* reply) override;
  grpc::Status FreeBuffer(grpc::ServerContext* context, const proto::FreeBufferRequest* request,
                          proto::FreeBufferReply* reply) override;
  grpc::Status FillBuffer(grpc::ServerContext* context, const proto::FillBufferRequest* request,
                          proto::FillBufferReply* reply) override;
  grpc::Status WriteBuffer(grpc::ServerContext* context, const proto::WriteBufferRequest* request,
                           proto::WriteBufferReply* reply) override;
  grpc::Status ReadBuffer(grpc::ServerContext* context, const proto::ReadBufferRequest* request,
                          proto::ReadBufferReply* reply) override;
  grpc::Status LoadWeights(grpc::ServerContext* context, const proto::LoadWeightsRequest* request,
                           grpc::ServerWriter<proto::LoadWeightsReply>* writer) override;
  grpc::Status FindWeights(grpc::ServerContext* context, const proto::FindWeightsRequest* request,
                           proto::FindWeightsReply* reply) override;
  grpc::Status GiveWeights(grpc::ServerContext* context, const proto::GiveWeightsRequest* request,
                           proto::GiveWeightsReply* reply) override;
  grpc::Status TakeWeights(grpc::ServerContext* context, const proto::TakeWeightsRequest* request,
                           grpc::ServerWriter<proto::TakeWeightsReply>* writer) override;
  // Takes one piece; the weight counts as failed from the first damaged one on.
  void TakePiece(const proto::TakenWeight& wanted, const WeightPiece& piece, bool with_digests,
                 std::map<int32_t, std::string>& failures);
  grpc::Status InstallProgram(grpc::ServerContext* context,
                              const proto::InstallProgramRequest* request,
                              proto::InstallProgramReply* reply) override;
  grpc::Status Instantiate(grpc::ServerContext* context, const proto::InstantiateRequest* request,
                           proto::InstantiateReply* reply) override;
  grpc::Status ReleaseInstance(grpc::ServerContext* context,
                               const proto::ReleaseInstanceRequest* request,
                               proto::ReleaseInstanceReply* reply) override;
  grpc::Status MeasureLink(grpc::ServerContext* context, const proto::MeasureLinkRequest* request,
                           proto::MeasureLinkReply* reply) override;
  grpc::Status Statistics(grpc::ServerContext* context, const proto::StatisticsRequest* request,
                          proto::StatisticsReply* reply) override;

  const SystemClock clock_;
  std::string address_;
  GrpcTransport transport_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> mute_ = false;
  std::atomic<bool> stop_ = false;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::string> buffers_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, std::string> weights_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> cancelled_steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Plane>> planes_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  int sessions_ ABSL_GUARDED_BY(mutex_) = 0;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int32_t, int64_t> content_bytes_ ABSL_GUARDED_BY(mutex_);  // of weights
  std::string farewell_ ABSL_GUARDED_BY(mutex_);
};

template <typename Work>
grpc::Status FakeWorker::Handle(const std::string& verb, grpc::ServerContext* context,
                                const Work& work) {
  {
    MutexLock lock(mutex_);
    ++calls_[verb];
    changed_.NotifyAll();
  }
  if (compress) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  if (const auto found = hang.find(verb); found != hang.end() && found->second) {
    AwaitCancel(context);
    return grpc::Status::CANCELLED;
  }
  if (const auto found = fail.find(verb); found != fail.end()) return found->second;
  return work();
}

}  // namespace weft
