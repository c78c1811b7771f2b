#include "worker/worker_options.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "rpc_backend/membership/join_claim.h"
#include "worker/listen_address.h"

namespace weft {
namespace {

constexpr int32_t kMaxThreads = 1024;
constexpr size_t kMaxNameBytes = 253;  // as names of machines

absl::Status CheckReach(std::string_view flag, const std::string& text,
                        const WorkerOptions& options) {
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(flag, text));
  if (address.loopback || options.insecure || !options.tls.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      AbslView(flag), " ", text,
      ": whoever reaches this address could use the worker, and nothing would be encrypted; pass "
      "--tls DIR ('weft certs --help' says how to make one), or --insecure on a network that you "
      "trust"));
}

absl::Status CheckSecurity(const WorkerOptions& options) {
  const std::string& transport = options.transport;
  if (transport != "auto" && transport != "ucx" && transport != "grpc" && transport != "tls") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport: '", transport, "'; use auto, ucx, grpc or tls"));
  }
  if (!options.tls.empty() && options.insecure) {
    return absl::InvalidArgumentError("--insecure and --tls contradict each other");
  }
  if (transport == "tls" && options.tls.empty()) {
    return absl::InvalidArgumentError("--data-plane tls needs --tls DIR");
  }
  RETURN_IF_ERROR(CheckReach("--listen", options.listen, options));
  if (options.data_listen.empty()) return absl::OkStatus();
  return CheckReach("--data-listen", options.data_listen, options);
}

absl::Status CheckJoin(const WorkerOptions& options) {
  if (options.join.empty() != options.join_token_file.empty()) {
    return absl::InvalidArgumentError("--join HOST:PORT and --join-token-file FILE go together");
  }
  if (options.join.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ListenAddress listen, ParseListenAddress("--listen", options.listen));
  if (listen.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--join: the coordinator cannot connect back to ", options.listen,
                     "; use --listen HOST:PORT"));
  }
  return ParseJoinAddress(options.join).status();
}

absl::Status CheckAnnounce(const WorkerOptions& options) {
  if (options.announce.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress("--announce", options.announce));
  if (!address.host.empty() && !IsWildcard(address.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--announce: '", options.announce,
                   "': other machines cannot connect to that; want HOST[:PORT]"));
}

// It goes into logs and tables of others.
absl::Status CheckName(const std::string& name) {
  const std::string shown = EscapedText(name, kMaxNameBytes);
  if (shown == name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--name: '", shown, "': want at most ",
                                                 kMaxNameBytes,
                                                 " bytes of text without control characters"));
}

}  // namespace

absl::StatusOr<HostAddress> ParseJoinAddress(std::string_view text) {
  absl::StatusOr<HostAddress> address = ParseHostAddress(text, kDefaultJoinPort);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--join: ", address.status().message()));
  }
  if (!address->host.empty()) return address;
  return absl::InvalidArgumentError(
      absl::StrCat("--join: '", AbslView(text), "': want HOST:PORT of a coordinator"));
}

absl::StatusOr<PortRange> ParsePortRange(std::string_view flag, std::string_view text) {
  if (text.empty()) return PortRange();
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(AbslView(text), absl::MaxSplits('-', 1));
  const absl::string_view last_text =
      absl::StrContains(AbslView(text), '-') ? ends.second : ends.first;
  uint32_t first = 0;
  uint32_t last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) || !absl::SimpleAtoi(last_text, &last) || first < 1 ||
      last < first || last > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(flag), ": '", AbslView(text),
                                                   "': want FIRST or FIRST-LAST, 1 to 65535"));
  }
  return PortRange{static_cast<uint16_t>(first), static_cast<uint16_t>(last)};
}

absl::Status CheckWorkerOptions(const WorkerOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads: ", options.threads, ", want 1 to ", kMaxThreads));
  }
  if (options.memory_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--memory: ", options.memory_bytes, " bytes"));
  }
  if (options.lease_ms < 100) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease-ms: ", options.lease_ms, ", want at least 100"));
  }
  if (!(options.drain_seconds >= 0 && options.drain_seconds <= 86400)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--drain-seconds: ", options.drain_seconds, ", want 0 to 86400"));
  }
  if (options.metrics_port < -1 || options.metrics_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-port: ", options.metrics_port, " is no port"));
  }
  if (options.parent < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--parent: ", options.parent, " is no process"));
  }
  RETURN_IF_ERROR(CheckName(options.name));
  RETURN_IF_ERROR(CheckAnnounce(options));
  RETURN_IF_ERROR(CheckSecurity(options));
  RETURN_IF_ERROR(CheckJoin(options));
  return ParsePortRange("--data-ports", options.data_ports).status();
}

}  // namespace weft
