// The gRPC side of a RemoteWorker: channels, the session, calls in progress and their end when the
// worker is lost. Included by sources of this folder only.
#pragma once

#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/client/free_queue.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/session_stream.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "rpc_backend/protocol/limits.h"
#include "rpc_backend/protocol/message_check.h"

namespace weft {

// Any thread may call.
class WorkerConnection {
 public:
  // As RemoteWorker::Connect.
  // Says hello to the worker and forgets it.
  static absl::StatusOr<WorkerHello> Greet(RemoteWorkerOptions options);
  static absl::StatusOr<std::shared_ptr<WorkerConnection>> Open(RemoteWorkerOptions options,
                                                                Logger* logger);
  ~WorkerConnection();

  const RemoteWorkerOptions& options() const { return options_; }
  const HostAddress& address() const { return address_; }
  const std::string& label() const { return label_; }
  const WorkerHello& hello() const { return hello_; }
  const WireLimits& limits() const { return limits_; }
  Logger* logger() const { return logger_; }
  int64_t session() const { return session_; }
  const Clock& clock() const { return clock_; }

  absl::Status lost() const;
  int64_t AddLossListener(std::function<void(const absl::Status&)> listener);
  void RemoveLossListener(int64_t number);
  PingStatistics pings() const { return stream_->pings(); }
  bool draining() const { return stream_->draining(); }
  void Close();

  // `error`; but if its code is UNAVAILABLE and the worker is lost, or is found to be within the
  // time of a ping, that: a broken connection shows elsewhere before the session's end is noticed.
  absl::Status Explain(const absl::Status& error);

  // The number of the newest epoch that was opened in this session; 0: none.
  uint32_t last_epoch() const;
  void UseEpoch(uint32_t epoch);

  // --- calls ---

  // One call in progress: ends with CANCELLED when the worker is lost. For the time of the call.
  class Call {
   public:
    // With a deadline that counts from now.
    Call(WorkerConnection& connection, std::chrono::milliseconds timeout);
    // Without one, but cancelled when Moved was not called for `stall`, or once *cancel is set (may
    // be null), looked at once per ping.
    Call(WorkerConnection& connection, std::chrono::milliseconds stall,
         const std::atomic<bool>* cancel);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    grpc::ClientContext& context() { return context_; }
    void Moved();
    // For CancelCalls; before anything happens.
    void SetVerb(std::string_view verb);
    // What a caller of `verb` is told: OK, or an error with the worker's name.
    absl::Status Result(std::string_view verb, const grpc::Status& status);

   private:
    friend class WorkerConnection;
    void Begin();

    WorkerConnection& connection_;
    grpc::ClientContext context_;
    const std::chrono::milliseconds timeout_;  // 0: ends by stalling
    const std::chrono::milliseconds stall_;
    const std::atomic<bool>* const cancel_;
    std::atomic<Clock::TimePoint> moved_;
    std::atomic<bool> stalled_ = false;
    std::atomic<bool> cancelled_ = false;
    std::string_view verb_;  // under the connection's mutex
    std::list<Call*>::iterator place_;
  };

  // A unary call of this session, checked: its reply is within the bounds of CheckMessage.
  template <typename Request, typename Reply>
  absl::Status Invoke(std::string_view verb,
                      grpc::Status (proto::Worker::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Reply*),
                      Request& request, Reply& reply, std::chrono::milliseconds timeout) {
    request.set_session(session_);
    Call call(*this, timeout);
    call.SetVerb(verb);
    const grpc::Status status =
        lost().ok() ? (*stub_.*method)(&call.context(), request, &reply) : grpc::Status::CANCELLED;
    if (absl::Status result = call.Result(verb, status); !result.ok()) return result;
    return CheckReply(verb, reply);
  }
  template <typename Request, typename Reply>
  absl::Status Invoke(std::string_view verb,
                      grpc::Status (proto::Worker::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Reply*),
                      Request& request, Reply& reply) {
    return Invoke(verb, method, request, reply, options_.call_timeout);
  }
  proto::Worker::Stub& stub() { return *stub_; }

  // Ends calls in progress with that name, with CANCELLED.
  void CancelCalls(std::string_view verb);

  // INTERNAL with the worker's name unless the reply is within bounds.
  absl::Status CheckReply(std::string_view verb, const google::protobuf::Message& reply) const;
  // "worker w0 (...): <verb>: <text>".
  absl::Status Nonsense(std::string_view verb, std::string_view text) const;
  absl::Status Error(absl::StatusCode code, std::string_view verb, std::string_view text) const;

  // Has the worker free a buffer, without waiting.
  void FreeLater(int64_t handle) { frees_->Add(handle); }
  // Waits until what was freed before is free; not longer than a call may take.
  void FlushFrees();

 private:
  WorkerConnection(RemoteWorkerOptions options, HostAddress address, Logger* logger);
  absl::Status Start();
  absl::Status Hello(std::chrono::milliseconds timeout);
  void Lose(const std::string& why);
  void EndStalledCalls();
  // `error` of the first call, or what is found to be the reason.
  absl::Status WhyNot(const absl::Status& error);
  absl::Status OpenSession(std::chrono::milliseconds timeout);
  // Waits for the loss of the worker, at most for the time of a ping.
  void AwaitLoss();
  void CancelAllCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeNow(int64_t handle);

  const RemoteWorkerOptions options_;
  const HostAddress address_;
  const std::string label_;
  Logger* const logger_;
  const WireLimits limits_;
  const SystemClock clock_;
  WorkerHello hello_;
  int64_t session_ = 0;
  std::unique_ptr<proto::Worker::Stub> stub_;
  std::unique_ptr<proto::Worker::Stub> session_stub_;  // a connection of its own: pings are not
                                                       // late because weights are under way

  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  std::list<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::function<void(const absl::Status&)>> listeners_ ABSL_GUARDED_BY(mutex_);
  int64_t next_listener_ ABSL_GUARDED_BY(mutex_) = 1;
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t last_epoch_ ABSL_GUARDED_BY(mutex_) = 0;

  // Threads that use the above: the last to be made and the first to go.
  std::unique_ptr<FreeQueue> frees_;
  std::unique_ptr<SessionStream> stream_;
};

}  // namespace weft
