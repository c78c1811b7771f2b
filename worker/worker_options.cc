#include "worker/worker_options.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/listen_address.h"

namespace weft {
namespace {

constexpr int32_t kMaxThreads = 1024;

}  // namespace

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
  if (options.transport != "auto" && options.transport != "ucx" && options.transport != "grpc") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport: '", options.transport, "'; use auto, ucx or grpc"));
  }
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress("--listen", options.listen));
  if (!address.loopback && !options.insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", options.listen,
        ": whoever reaches this address could use the worker, nothing is encrypted yet; pass "
        "--insecure on a network that you trust"));
  }
  return absl::OkStatus();
}

}  // namespace weft
