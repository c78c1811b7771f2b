// Which of the addresses of a directory lead to workers, and to which.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/worker_directory.h"
#include "rpc_backend/client/remote_worker.h"

namespace weft {

// What a process is, wherever it is reached: its machine and the bytes that it drew at its start.
std::string WorkerIdentity(const RemoteWorkerInfo& info);
std::string IdentityText(const std::string& host_identity, const std::string& incarnation);

struct FoundWorker {
  std::string address;
  std::string identity;
};

// Says hello at each address, all at the same time, with `options` but for name and address.
// Results are in the order of `addresses`; errors are those of RemoteWorker::Connect.
std::vector<absl::StatusOr<FoundWorker>> AskAddresses(absl::Span<const std::string> addresses,
                                                      const RemoteWorkerOptions& options);

// The workers behind the directory's name by number, once each whatever their addresses. Addresses
// that do not answer are left out with a warning. Waits for the first address until `deadline`.
// Errors: those of the directory; UNAVAILABLE (ErrorScope::kWorker) where nobody answers.
struct NumberedWorker {
  FoundWorker worker;
  int32_t number = 0;
};
absl::StatusOr<std::vector<NumberedWorker>> FindWorkers(WorkerDirectory& directory,
                                                        const RemoteWorkerOptions& options,
                                                        Clock::TimePoint deadline, Logger& logger);

// Looks every few seconds whether the name leads to workers that a fleet does not have.
class WorkerWatch {
 public:
  struct Options {
    RemoteWorkerOptions worker;                   // but for name and address
    std::chrono::milliseconds period{2000};       // between looks
    std::chrono::milliseconds quiet_start{5000};  // nothing is said before: a plan was just made
  };
  // `fleet` are the identities of those that are known. `directory` outlives it.
  static absl::StatusOr<std::unique_ptr<WorkerWatch>> Start(WorkerDirectory& directory,
                                                            std::vector<std::string> fleet,
                                                            Options options);
  ~WorkerWatch();

  // OK until there are others, and two looks found the same ones; then UNAVAILABLE naming their
  // addresses. Any thread may call.
  absl::Status news() const;

 private:
  WorkerWatch(WorkerDirectory& directory, std::vector<std::string> fleet, Options options)
      : directory_(directory), fleet_(std::move(fleet)), options_(std::move(options)) {}
  void Run();
  std::vector<std::string> Newcomers();

  WorkerDirectory& directory_;
  const std::vector<std::string> fleet_;
  const Options options_;
  const SystemClock clock_;
  std::vector<std::string> known_addresses_;  // that lead to workers of the fleet
  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status news_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace weft
