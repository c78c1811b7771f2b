// The stream that a session lives on: opens it, pings on a thread of its own, and notices when the
// worker falls silent or ends it. Included by sources of this folder only.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/silence_meter.h"

namespace weft {

struct SessionStreamOptions {
  std::string coordinator;
  std::chrono::milliseconds ping_period{500};
  std::chrono::milliseconds loss_after{2500};
  // Told once when the session ends by itself, with why it did: "did not answer for 2.5 s". From
  // the thread that pings or one of gRPC's, and not for Close.
  std::function<void(const std::string& why)> on_end;
  // Called before each ping, from the thread that pings.
  std::function<void()> on_tick;
};

// gRPC calls the reactor's methods; any thread may call the others.
class SessionStream final
    : private grpc::ClientBidiReactor<proto::SessionRequest, proto::SessionReply> {
 public:
  // Waits for the session's number. Errors: those of the worker, without its name;
  // DEADLINE_EXCEEDED; INTERNAL for a number that is none.
  static absl::StatusOr<std::unique_ptr<SessionStream>> Open(proto::Worker::Stub& stub,
                                                             SessionStreamOptions options,
                                                             std::chrono::milliseconds timeout);
  // Closes.
  ~SessionStream() override;

  int64_t session() const { return session_; }
  PingStatistics pings() const;
  // The worker said that it will go.
  bool draining() const;
  // Lets the worker end the session, waits for that a short while, then cancels. Idempotent.
  void Close();

 private:
  explicit SessionStream(SessionStreamOptions options);

  absl::Status Start(proto::Worker::Stub& stub, std::chrono::milliseconds timeout);
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // Returns why the reply ends the session; empty if it does not.
  std::string TakeReply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends what is due until the stream is over, then lets go of it.
  void PingLoop();
  // Sends a ping unless the last one is still on its way out.
  void Ping() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reports the end, the first time.
  void End(const std::string& why);

  const SessionStreamOptions options_;
  const SystemClock clock_;
  grpc::ClientContext context_;
  proto::SessionRequest request_;  // gRPC's while writing_
  proto::SessionReply reply_;      // gRPC's but in OnReadDone
  int64_t session_ = 0;            // constant once Open has returned
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;     // nothing more is read
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;  // by us
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has forgotten this object
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(mutex_);  // it ended
  absl::Status final_ ABSL_GUARDED_BY(mutex_);
  SilenceMeter silence_ ABSL_GUARDED_BY(mutex_);
  int64_t last_ping_ ABSL_GUARDED_BY(mutex_) = 0;  // sent
  Clock::TimePoint sent_at_ ABSL_GUARDED_BY(mutex_);
  int64_t last_answer_ ABSL_GUARDED_BY(mutex_) = 0;  // to which of them
  PingStatistics pings_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
