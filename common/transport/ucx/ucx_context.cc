#include "common/transport/ucx/ucx_context.h"

#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

struct ReleaseConfig {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

absl::StatusOr<Config> ReadConfig() {
  ucp_config_t* config = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return UcxError("the UCX settings cannot be read", status);
  return Config(config);
}

// The value of a setting as UCX read it from the environment; empty if there is none.
std::string Setting(const ucp_config_t* config, absl::string_view name) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return "";
  ucp_config_print(config, stream, nullptr, UCS_CONFIG_PRINT_CONFIG);
  (void)std::fclose(stream);
  const std::string prefix = absl::StrCat("UCX_", name, "=");
  std::string value;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text, size), '\n')) {
    if (line.substr(0, prefix.size()) == prefix) value = std::string(line.substr(prefix.size()));
  }
  free(text);
  return value;
}

// UCX takes any name, also one it does not know. Settings of its lower layers go without their
// prefix: REUSEADDR for UCX_TCP_CM_REUSEADDR.
absl::Status Set(ucp_config_t* config, const char* name, const std::string& value) {
  const ucs_status_t status = ucp_config_modify(config, name, value.c_str());
  if (status == UCS_OK) return absl::OkStatus();
  return UcxError(absl::StrCat("UCX setting ", name, "=", value).c_str(), status);
}

// Takes back what loading UCX changed in the process: its handlers of fatal signals, and warnings
// on stderr of what we report ourselves.
void QuietUcx() {
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
  char level[32] = {};
  if (ucs_global_opts_get_value("LOG_LEVEL", level, sizeof level) == UCS_OK &&
      std::string_view(level) == "WARN") {
    (void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  }
}

// RDMA ports of this machine, as UCX calls them: "mlx5_0:1".
std::string RdmaDevices() {
  std::string devices;
  std::error_code error;
  const std::filesystem::path root = "/sys/class/infiniband";
  for (const auto& device : std::filesystem::directory_iterator(root, error)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error)) {
      absl::StrAppend(&devices, ",", device.path().filename().string(), ":",
                      port.path().filename().string());
    }
  }
  return devices;
}

absl::Status Configure(ucp_config_t* config, UcxMode mode, const std::string& transports,
                       const std::string& network_interface, bool ipv6) {
  const std::string chosen = !transports.empty()       ? transports
                             : mode == UcxMode::kLocal ? "posix,cma,self,tcp"
                                                       : "^shm";
  RETURN_IF_ERROR(Set(config, "TLS", chosen));
  // UCX 1.13 writes beyond its memory where a connection's family is not that of its interfaces.
  if (ipv6) RETURN_IF_ERROR(Set(config, "AF_PRIO", "inet6"));
  // Otherwise UCX may send what came in by one interface out by another.
  if (!network_interface.empty() && Setting(config, "NET_DEVICES") == "all") {
    RETURN_IF_ERROR(Set(config, "NET_DEVICES", network_interface + RdmaDevices()));
  }
  if (mode == UcxMode::kLocal && Setting(config, "RNDV_SCHEME") == "auto") {
    // The receiver reads, so that nobody writes into a process that has given up waiting.
    return Set(config, "RNDV_SCHEME", "get_zcopy");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UcxError(const char* what, ucs_status_t status) {
  return absl::UnavailableError(absl::StrCat(what, ": ", ucs_status_string(status)));
}

std::string ConfiguredTransports(const std::string& option) {
  if (!option.empty()) return option;
  const absl::StatusOr<Config> config = ReadConfig();
  if (!config.ok()) return "";
  const std::string value = Setting(config->get(), "TLS");
  return value == "all" ? "" : value;
}

bool AllowsSharedMemory(std::string_view transports) {
  if (transports.empty() || transports.front() == '^') return true;
  for (const absl::string_view word : absl::StrSplit(AbslView(transports), ',')) {
    for (const char* name : {"all", "shm", "sm", "mm", "posix", "sysv", "xpmem"}) {
      if (word == name || word == absl::StrCat("\\", name)) return true;
    }
  }
  return false;
}

absl::StatusOr<std::shared_ptr<UcxContext>> UcxContext::Create(UcxMode mode,
                                                               const std::string& transports,
                                                               const std::string& network_interface,
                                                               bool ipv6) {
  static std::once_flag quiet;
  std::call_once(quiet, QuietUcx);
  ASSIGN_OR_RETURN(const Config config, ReadConfig());
  RETURN_IF_ERROR(Configure(config.get(), mode, transports, network_interface, ipv6));
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  ucp_context_h handle = nullptr;
  const ucs_status_t status = ucp_init(&params, config.get(), &handle);
  if (status != UCS_OK) return UcxError("UCX does not start", status);
  return std::shared_ptr<UcxContext>(absl::WrapUnique(new UcxContext(handle, mode)));
}

}  // namespace weft
