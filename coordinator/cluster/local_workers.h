// Worker processes of this machine that live as long as the coordinator: `--local-workers K`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

struct LocalWorkersOptions {
  std::string binary;  // of weft-worker; empty: beside this program
  int32_t count = 1;
  int32_t threads = 1;                 // of all workers together; each has at least one
  std::string instruction_set;         // empty: the best
  std::string transport = "auto";      // as the worker's flag
  std::vector<std::string> arguments;  // more of them, for each worker
};

// One thread at a time.
class LocalWorkers {
 public:
  // Starts them on Unix sockets in a new private folder and waits until all listen. Errors:
  // INVALID_ARGUMENT for the count; FAILED_PRECONDITION where the program is missing; UNAVAILABLE
  // for one that ends at once or does not listen in time.
  static absl::StatusOr<std::unique_ptr<LocalWorkers>> Spawn(const LocalWorkersOptions& options);
  // Ends them, reaps them and removes the folder.
  ~LocalWorkers();

  // As RemoteWorker takes them.
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::vector<pid_t>& processes() const { return processes_; }

 private:
  LocalWorkers() = default;
  absl::Status Start(const LocalWorkersOptions& options, int32_t index);
  absl::Status AwaitSocket(int32_t index);

  std::string folder_;
  std::vector<std::string> sockets_;
  std::vector<std::string> addresses_;
  std::vector<pid_t> processes_;
};

}  // namespace weft
