// The flags that say which workers a command uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "coordinator/cluster/fleet.h"

namespace CLI {
class App;
}

namespace weft {

// As typed.
struct FleetFlags {
  std::string workers;
  std::string workers_dns;
  std::string workers_join;
  std::string join_token_file;
  double join_lease_s = 15;
  int32_t join_workers = 1;
  // Made by the first ParseFleetFlags that is given none; a command that opens several fleets keeps
  // it here, so that workers keep their names.
  std::shared_ptr<WorkerDirectory> directory;
  bool watch = false;  // FleetOptions::watch
  int32_t local_workers = 0;
  std::string transport = "auto";
  double worker_timeout_s = 2.5;
  std::string tls;
  bool insecure = false;
  bool allow_idle = false;
  bool send_weights = false;

  // Workers are found while the command runs; who names none does not know how many there are.
  bool searched() const { return !workers_dns.empty() || !workers_join.empty(); }
  bool any() const { return !workers.empty() || searched() || local_workers != 0; }
};

void AddFleetFlags(CLI::App& command, FleetFlags& flags);

// The workers behind --workers-dns, or those that join at --workers-join, as they may from now on;
// null without these flags. `logger` outlives it. Errors: INVALID_ARGUMENT naming the flag; those
// of JoinedWorkers.
absl::StatusOr<std::shared_ptr<WorkerDirectory>> OpenWorkerDirectory(const FleetFlags& flags,
                                                                     Logger& logger);

// What they mean; `threads` and `instruction_set` are for workers that are started here. Errors:
// INVALID_ARGUMENT naming the flag; those of OpenWorkerDirectory.
absl::StatusOr<FleetOptions> ParseFleetFlags(const FleetFlags& flags, int32_t threads,
                                             const std::string& instruction_set, Logger& logger);

}  // namespace weft
