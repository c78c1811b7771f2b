// Makes this worker one of a coordinator's, and keeps it one: joins, and joins again before each
// lease ends, whichever of the two is started first or again.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "rpc_backend/membership/join_client.h"

namespace weft {

struct JoinerOptions {
  HostAddress coordinator;
  std::string token_file;
  WireSecurity security;
  // Without the address, which is `own`; an empty host: the address from which this machine
  // reaches the coordinator.
  JoinClaim claim;
  HostAddress own;
};

class Joiner {
 public:
  // `logger` outlives it. Errors: those of JoinToken and JoinClient.
  static absl::StatusOr<std::unique_ptr<Joiner>> Start(JoinerOptions options, Logger& logger);
  // Leaves, if that takes no longer than a second.
  ~Joiner();

  // Joins no more, and tells the coordinator. Does not wait.
  void Leave();
  // Whether the coordinator has this worker in its list.
  bool joined() const;

 private:
  Joiner(JoinerOptions options, std::unique_ptr<JoinToken> token,
         std::unique_ptr<JoinClient> client, Logger& logger)
      : options_(std::move(options)),
        token_(std::move(token)),
        client_(std::move(client)),
        logger_(logger) {}
  void Run();
  absl::StatusOr<std::chrono::milliseconds> JoinOnce(bool leaving);
  void Report(const absl::Status& status);

  const JoinerOptions options_;
  const std::unique_ptr<JoinToken> token_;
  const std::unique_ptr<JoinClient> client_;
  Logger& logger_;
  const SystemClock clock_;
  // Of the thread:
  std::string address_;    // that was given to the coordinator last
  std::string complaint_;  // the last one
  Clock::TimePoint complained_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weft
