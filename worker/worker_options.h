// Every flag of weft-worker, with unit and default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/host_address.h"

namespace weft {

struct WorkerOptions {
  std::string listen = "127.0.0.1:7000";  // control address: HOST:PORT, port 0: any; or unix:PATH
  std::string data_listen;                // host of the data plane; empty: as `listen`
  std::string data_ports;                 // of UCX: "7100" or "7100-7163"; empty: any
  // HOST[:PORT] under which other machines reach the data plane, where that is not the address it
  // listens on; PORT stands for the control port. Empty: as listened on.
  std::string announce;
  std::string name;             // for people; empty: the host's name
  std::string join;             // coordinator to be a worker of: HOST:PORT; empty: none
  std::string join_token_file;  // with it
  std::vector<std::string> devices = {"cpu"};
  int32_t threads = 0;  // of the CPU device; 0: DefaultThreads
  int64_t memory_bytes =
      0;  // most that the CPU device gives out; 0: the machine's, or DefaultMemoryBytes
  std::string instruction_set;  // empty: the best
  std::string cache;            // folder; empty: no cache
  int64_t cache_quota_bytes = int64_t{100} << 30;
  bool no_files = false;           // weights come from cache, peers and coordinator only
  std::string transport = "auto";  // "auto", "ucx", "grpc"; "tls": gRPC, which `tls` encrypts
  int32_t lease_ms = 10000;        // a session without a sign of its coordinator ends after it
  double drain_seconds = 30;       // how long sessions may go on after SIGTERM
  std::string metrics_host = "127.0.0.1";
  int32_t metrics_port = -1;       // of probes and metrics; 0: any free one; -1: none
  std::string metrics_token_file;  // whose token /metrics wants; empty: none
  int32_t parent = 0;              // ends when that process is gone; 0: lives on
  bool remove_folder = false;      // of its Unix socket, at the end, where it is empty
  bool self_test = true;           // of every device, at the start
  std::string tls;                 // folder with certificates; empty: plaintext
  bool insecure = false;           // listen beyond loopback without encryption
  bool quiet = false;
  bool verbose = false;
};

// A range of ports, both included.
struct PortRange {
  uint16_t first = 0;  // 0: any
  uint16_t last = 0;
};

// Takes "", "7100" and "7100-7163". Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<PortRange> ParsePortRange(std::string_view flag, std::string_view text);

// The coordinator of --join. Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<HostAddress> ParseJoinAddress(std::string_view text);

// Errors: INVALID_ARGUMENT naming the flag.
absl::Status CheckWorkerOptions(const WorkerOptions& options);

}  // namespace weft
