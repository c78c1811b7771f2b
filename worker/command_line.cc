#include "worker/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/base/log.h"
#include "common/flags/flag_checks.h"
#include "rpc_backend/protocol/grpc_tls/grpc_process.h"
#include "rpc_backend/protocol/silence_protobuf.h"
#include "worker/worker.h"
#include "worker/worker_metrics.h"

namespace weft {
namespace {

void AddMetricsFlags(CLI::App& app, WorkerOptions& options) {
  app.add_option("--metrics-port", options.metrics_port,
                 "port of /livez, /readyz and /metrics; 0: any free one; without it there is none")
      ->check(CLI::Range(0, 65535));
  app.add_option(
      "--metrics-token-file", options.metrics_token_file,
      "file with the token that /metrics wants (Authorization: Bearer TOKEN); read again "
      "when it changes");
  app.add_option("--metrics-host", options.metrics_host, "address of that port")
      ->capture_default_str();
}

void AddFlags(CLI::App& app, WorkerOptions& options) {
  app.add_option("--listen", options.listen, "control address: HOST:PORT, [IPV6]:PORT, unix:PATH")
      ->capture_default_str();
  app.add_option("--data-listen", options.data_listen,
                 "host of the data plane; default: that of --listen");
  app.add_option("--data-ports", options.data_ports,
                 "ports of the data plane over UCX: FIRST or FIRST-LAST; default: any");
  app.add_option("--announce", options.announce,
                 "HOST[:PORT] under which other machines reach this one's data plane and control "
                 "port, where that is not where it listens (containers, NAT)");
  app.add_option(
      "--join", options.join,
      "HOST:PORT of a coordinator (its --workers-join) to be a worker of; again and again");
  app.add_option("--join-token-file", options.join_token_file,
                 "file with the token of that coordinator (weft certs token); read again when it "
                 "changes");
  app.add_option("--name", options.name, "how people call it; default: the machine's name");
  app.add_option("--devices", options.devices, "devices to offer: cpu, blas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "-t,--threads", options.threads,
         "threads of the CPU; 0: one per processor, fewer where a control group allows fewer")
      ->capture_default_str();
  app.add_option(
         "--memory", options.memory_bytes,
         "most memory to give out; 0: what the machine has, or most of what a control group allows")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--isa", options.instruction_set,
                 "force an instruction set: scalar, avx2, avx512, neon");
  app.add_option("--cache", options.cache, "folder that keeps weights which came over the network");
  app.add_option("--cache-quota", options.cache_quota_bytes, "most bytes in --cache")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_flag(
      "--no-files", options.no_files,
      "use no model files of this machine: weights come from --cache, other workers and the "
      "coordinator");
  app.add_option("--transport,--data-plane", options.transport,
                 "data plane: auto, ucx, grpc, or tls (grpc, all of it encrypted)")
      ->capture_default_str();
  app.add_option("--tls", options.tls,
                 "folder with ca.crt, tls.crt and tls.key of this worker (weft certs)")
      ->envname("WEFT_TLS");
  app.add_option("--lease-ms", options.lease_ms,
                 "a coordinator that is silent for so long has lost its session")
      ->capture_default_str();
  app.add_option("--drain-seconds", options.drain_seconds,
                 "how long sessions may go on after SIGTERM; a second one ends at once")
      ->capture_default_str();
  AddMetricsFlags(app, options);
  app.add_option("--parent", options.parent, "end with that process");
  app.add_flag("--remove-folder", options.remove_folder,
               "remove the folder of its Unix socket at the end, where that is empty");
  app.add_flag_callback(
      "--no-self-test", [&options] { options.self_test = false; },
      "trust the devices without computing every op once");
  app.add_flag("--insecure", options.insecure,
               "listen beyond this machine although nothing is encrypted");
  app.add_flag("-q,--quiet", options.quiet, "say only what went wrong");
  app.add_flag("-v,--verbose", options.verbose, "say more");
}

// Returns an exit code.
int PrintMetrics() {
  const std::string table = WorkerMetricsTable();
  const bool written = std::fwrite(table.data(), 1, table.size(), stdout) == table.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int RunWorkerCommandLine(int argc, char** argv, const DeviceFactory& factory,
                         const TransportWrapper& wrap_ucx) {
  CLI::App app("weft-worker offers this machine's devices to weft.", "weft-worker");
  app.footer("Example: weft-worker --listen 127.0.0.1:7000 --threads 4 --cache ~/.cache/weft");
  app.set_version_flag("--version", "weft-worker " WEFT_VERSION);
  WorkerOptions options;
  bool print_metrics = false;
  AddFlags(app, options);
  app.add_flag("--print-metrics", print_metrics, "list the metrics that a worker can have");
  CheckFlagValues(app);
  if (const std::string fault = FindValuelessFlag({argv + 1, argv + argc}); !fault.empty()) {
    Logger("weft-worker", LogLevel::kInfo).Error(fault);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return PrintHelp(app, error);
    Logger("weft-worker", LogLevel::kInfo).Error(error.what());
    return 2;
  }
  if (print_metrics) return PrintMetrics();
  const LogLevel level = options.verbose ? LogLevel::kDebug
                         : options.quiet ? LogLevel::kWarning
                                         : LogLevel::kInfo;
  Logger logger("weft-worker", level);
  PrepareGrpcProcess();
  SilenceProtobuf();
  return RunWorker(options, factory, logger, wrap_ucx);
}

}  // namespace weft
