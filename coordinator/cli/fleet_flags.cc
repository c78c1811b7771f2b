#include "coordinator/cli/fleet_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/host_address.h"
#include "common/base/status_macros.h"
#include "common/host/control_group.h"
#include "coordinator/cluster/joined_workers.h"

namespace weft {
namespace {

// Of the flags in --help.
constexpr const char* kGroup = "Workers";

// How long the system may take to say what addresses a name has.
constexpr std::chrono::seconds kResolveTime{5};
// For the first workers to join.
constexpr std::chrono::seconds kJoinTime{60};

// Another program than the one beside this, for tests.
constexpr const char* kWorkerVariable = "WEFT_WORKER";
constexpr const char* kTlsVariable = "WEFT_TLS";

// For the value of a flag, also where it plays no part. NaN is not between two numbers.
std::function<std::string(const std::string&)> SecondsFrom(double least, double most) {
  return [least, most](const std::string& text) {
    double seconds = 0;
    if (absl::SimpleAtod(text, &seconds) && seconds >= least && seconds <= most) {
      return std::string();
    }
    return absl::StrCat("'", text, "' seconds, want ", least, " to ", most);
  };
}

absl::Status CheckSecurityFlags(const FleetFlags& flags) {
  if (!flags.tls.empty() && flags.insecure) {
    return absl::InvalidArgumentError("--insecure and --tls contradict each other");
  }
  if (flags.transport == "tls" && flags.tls.empty() && flags.local_workers == 0) {
    return absl::InvalidArgumentError("--data-plane tls needs --tls DIR");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<WorkerDirectory>> MakeNamedDirectory(const FleetFlags& flags) {
  const absl::StatusOr<std::string> normal = NormalWorkerAddress(flags.workers_dns);
  if (!normal.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers-dns: ", normal.status().message()));
  }
  ASSIGN_OR_RETURN(const HostAddress name, ParseHostAddress(*normal, 0));
  if (name.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers-dns: '", flags.workers_dns, "': want NAME:PORT"));
  }
  return std::make_shared<WorkerDirectory>(name, SystemResolver(kResolveTime));
}

absl::StatusOr<std::shared_ptr<WorkerDirectory>> OpenJoinedDirectory(const FleetFlags& flags,
                                                                     Logger& logger) {
  JoinedWorkersOptions options;
  absl::StatusOr<HostAddress> listen = ParseHostAddress(flags.workers_join, kDefaultJoinPort, 0);
  if (!listen.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers-join: ", listen.status().message()));
  }
  if (flags.join_token_file.empty()) {
    return absl::InvalidArgumentError(
        "--workers-join wants --join-token-file FILE; 'weft certs token FILE' makes one");
  }
  options.listen = *std::move(listen);
  options.token_file = flags.join_token_file;
  options.tls = flags.tls;
  options.insecure = flags.insecure;
  options.lease = std::chrono::milliseconds(static_cast<int64_t>(flags.join_lease_s * 1000));
  options.answer_within =
      std::chrono::milliseconds(static_cast<int64_t>(flags.worker_timeout_s * 1000));
  absl::StatusOr<std::unique_ptr<JoinedWorkers>> opened =
      JoinedWorkers::Open(std::move(options), logger);
  if (absl::IsInvalidArgument(opened.status())) {
    return absl::InvalidArgumentError(absl::StrCat("--workers-join: ", opened.status().message()));
  }
  RETURN_IF_ERROR(opened.status());
  // Shared by the copies of the function.
  const std::shared_ptr<JoinedWorkers> joined = *std::move(opened);
  WorkerDirectory::Patience patience;
  patience.least = static_cast<size_t>(flags.join_workers);
  patience.at_the_start = kJoinTime;
  return std::make_shared<WorkerDirectory>(
      HostAddress{}, [joined](const HostAddress&) { return joined->Addresses(); },
      absl::StrCat("the workers that joined at ", joined->address()), patience);
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
      .add_option("--workers-join", flags.workers_join,
                  "ADDR:PORT to listen on for workers that come by themselves (weft-worker --join)")
      ->group(kGroup);
  command
      .add_option("--join-token-file", flags.join_token_file,
                  "file with the token that they must have (weft certs token); read again when it "
                  "changes")
      ->group(kGroup);
  command
      .add_option("--join-workers", flags.join_workers,
                  "wait for so many of them before the first plan")
      ->check(CLI::Range(1, static_cast<int32_t>(MemberList::kMostMembers)))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--join-lease", flags.join_lease_s,
                  "seconds after which one that has not joined again is gone")
      ->check(SecondsFrom(0.3, 3600))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--local-workers", flags.local_workers,
                  "start so many workers on this machine, end them with the command")
      ->group(kGroup);
  command
      .add_option("--transport,--data-plane", flags.transport,
                  "what carries activations: ucx, grpc, tls (grpc, all of it encrypted), or auto "
                  "(ucx where all have it)")
      ->check(CLI::IsMember({"auto", "ucx", "grpc", "tls"}))
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
      ->check(SecondsFrom(0.1, 3600))
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

absl::StatusOr<std::shared_ptr<WorkerDirectory>> OpenWorkerDirectory(const FleetFlags& flags,
                                                                     Logger& logger) {
  if (flags.workers_join.empty() && !flags.join_token_file.empty()) {
    return absl::InvalidArgumentError("--join-token-file: for --workers-join ADDR:PORT only");
  }
  if (!flags.searched()) return nullptr;
  if (!flags.workers.empty() || flags.local_workers != 0 ||
      (!flags.workers_dns.empty() && !flags.workers_join.empty())) {
    return absl::InvalidArgumentError(
        "--workers, --local-workers, --workers-dns and --workers-join: workers are found in one "
        "of these ways only (but --workers and --local-workers go together)");
  }
  return flags.workers_dns.empty() ? OpenJoinedDirectory(flags, logger) : MakeNamedDirectory(flags);
}

absl::StatusOr<FleetOptions> ParseFleetFlags(const FleetFlags& flags, int32_t threads,
                                             const std::string& instruction_set, Logger& logger) {
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
  if (!flags.workers.empty() && options.workers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers: '", flags.workers, "' names none"));
  }
  if (flags.local_workers < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--local-workers: ", flags.local_workers, ", want at least 1"));
  }
  RETURN_IF_ERROR(CheckSecurityFlags(flags));
  options.directory = flags.directory;
  if (options.directory == nullptr) {
    ASSIGN_OR_RETURN(options.directory, OpenWorkerDirectory(flags, logger));
  }
  // Addresses that a name leads to are those of its certificate's owner.
  if (options.directory != nullptr) options.tls_name = options.directory->name().host;
  options.watch = flags.watch;
  options.local_workers = flags.local_workers;
  if (const char* const binary = std::getenv(kWorkerVariable)) options.local.binary = binary;
  options.local.threads = threads > 0 ? threads : DefaultThreads();
  options.local.instruction_set = instruction_set;
  options.transport = flags.transport;
  const bool elsewhere = !flags.workers.empty() || flags.searched();
  options.tls = elsewhere ? flags.tls : "";  // local workers have sockets
  options.insecure = flags.insecure && elsewhere;
  options.loss_after =
      std::chrono::milliseconds(static_cast<int64_t>(flags.worker_timeout_s * 1000));
  options.ignore_files = flags.send_weights;
  return options;
}

}  // namespace weft
