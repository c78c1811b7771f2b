// The flags that say which workers a command uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cluster/fleet.h"

namespace CLI {
class App;
}

namespace weft {

// As typed.
struct FleetFlags {
  std::string workers;
  std::string workers_dns;
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

  bool any() const { return !workers.empty() || !workers_dns.empty() || local_workers != 0; }
};

void AddFleetFlags(CLI::App& command, FleetFlags& flags);

// The workers behind --workers-dns; null without the flag. Errors: INVALID_ARGUMENT naming the
// flag.
absl::StatusOr<std::shared_ptr<WorkerDirectory>> MakeWorkerDirectory(const FleetFlags& flags);

// What they mean; `threads` and `instruction_set` are for workers that are started here. Errors:
// INVALID_ARGUMENT naming the flag.
absl::StatusOr<FleetOptions> ParseFleetFlags(const FleetFlags& flags, int32_t threads,
                                             const std::string& instruction_set);

}  // namespace weft
