#include "coordinator/cli/fleet_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/host_address.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Of the flags in --help.
constexpr const char* kGroup = "Workers";

// How long the system may take to say what addresses a name has.
constexpr std::chrono::seconds kResolveTime{5};

// Another program than the one beside this, for tests.
constexpr const char* kWorkerVariable = "WEFT_WORKER";
constexpr const char* kTlsVariable = "WEFT_TLS";

absl::Status CheckSecurityFlags(const FleetFlags& flags) {
  const std::string& transport = flags.transport;
  if (transport != "auto" && transport != "ucx" && transport != "grpc" && transport != "tls") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport: '", transport, "': want auto, ucx, grpc or tls"));
  }
  if (!flags.tls.empty() && flags.insecure) {
    return absl::InvalidArgumentError("--insecure and --tls contradict each other");
  }
  if (transport == "tls" && flags.tls.empty() && flags.local_workers == 0) {
    return absl::InvalidArgumentError("--data-plane tls needs --tls DIR");
  }
  return absl::OkStatus();
}

}  // namespace

void AddFleetFlags(CLI::App& command, FleetFlags& flags) {
  command
      .add_option("--workers", flags.workers,
                  "workers to use: HOST:PORT,[IPV6]:PORT,unix:PATH (port 7000 if left out)")
      ->group(kGroup);
  command
      .add_option("--workers-dns", flags.workers_dns,
                  "NAME:PORT: the workers at all addresses of a name; weft serve looks again when "
                  "one is lost or comes back")
      ->group(kGroup);
  command
      .add_option("--local-workers", flags.local_workers,
                  "start so many workers on this machine, end them with the command")
      ->group(kGroup);
  command
      .add_option("--transport,--data-plane", flags.transport,
                  "what carries activations: ucx, grpc, tls (grpc, all of it encrypted), or auto "
                  "(ucx where all have it)")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--tls", flags.tls,
                  "folder with ca.crt, tls.crt and tls.key (weft certs): TLS to --workers")
      ->envname(kTlsVariable)
      ->group(kGroup);
  command
      .add_flag("--insecure", flags.insecure,
                "connect to other machines although nothing is encrypted")
      ->group(kGroup);
  command
      .add_option("--worker-timeout", flags.worker_timeout_s,
                  "seconds after which a silent worker is lost; more for slow networks")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_flag("--allow-idle", flags.allow_idle, "no error if a listed worker has nothing to do")
      ->group(kGroup);
  command
      .add_flag("--send-weights", flags.send_weights,
                "send all weights to the workers, also where they see the file")
      ->group(kGroup);
}

absl::StatusOr<std::shared_ptr<WorkerDirectory>> MakeWorkerDirectory(const FleetFlags& flags) {
  if (flags.workers_dns.empty()) return nullptr;
  const absl::StatusOr<std::string> normal = NormalWorkerAddress(flags.workers_dns);
  if (!normal.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers-dns: ", normal.status().message()));
  }
  ASSIGN_OR_RETURN(const HostAddress name, ParseHostAddress(*normal, 0));
  if (name.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers-dns: '", flags.workers_dns, "': want NAME:PORT"));
  }
  if (!flags.workers.empty() || flags.local_workers != 0) {
    return absl::InvalidArgumentError(
        "--workers-dns: without --workers and --local-workers; all workers are behind the name");
  }
  return std::make_shared<WorkerDirectory>(name, SystemResolver(kResolveTime));
}

absl::StatusOr<FleetOptions> ParseFleetFlags(const FleetFlags& flags, int32_t threads,
                                             const std::string& instruction_set) {
  FleetOptions options;
  absl::flat_hash_set<std::string> seen;
  for (const absl::string_view piece : absl::StrSplit(flags.workers, ',', absl::SkipEmpty())) {
    absl::StatusOr<std::string> address =
        NormalWorkerAddress(std::string_view(piece.data(), piece.size()));
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--workers: ", address.status().message()));
    }
    if (!seen.insert(*address).second) {
      return absl::InvalidArgumentError(absl::StrCat("--workers: ", piece, " is listed twice"));
    }
    options.workers.push_back(*std::move(address));
  }
  if (flags.local_workers < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--local-workers: ", flags.local_workers, ", want at least 1"));
  }
  RETURN_IF_ERROR(CheckSecurityFlags(flags));
  if (!std::isfinite(flags.worker_timeout_s) || flags.worker_timeout_s < 0.1 ||
      flags.worker_timeout_s > 3600) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-timeout: ", flags.worker_timeout_s, " seconds, want 0.1 to 3600"));
  }
  options.directory = flags.directory;
  if (options.directory == nullptr) {
    ASSIGN_OR_RETURN(options.directory, MakeWorkerDirectory(flags));
  }
  // Addresses that a name leads to are those of its certificate's owner.
  if (options.directory != nullptr) options.tls_name = options.directory->name().host;
  options.watch = flags.watch;
  options.local_workers = flags.local_workers;
  if (const char* const binary = std::getenv(kWorkerVariable)) options.local.binary = binary;
  options.local.threads = threads > 0 ? threads : AvailableProcessors();
  options.local.instruction_set = instruction_set;
  options.transport = flags.transport;
  const bool elsewhere = !flags.workers.empty() || !flags.workers_dns.empty();
  options.tls = elsewhere ? flags.tls : "";  // local workers have sockets
  options.insecure = flags.insecure && elsewhere;
  options.loss_after =
      std::chrono::milliseconds(static_cast<int64_t>(flags.worker_timeout_s * 1000));
  options.ignore_files = flags.send_weights;
  return options;
}

}  // namespace weft
