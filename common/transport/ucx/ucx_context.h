// A ucp_context with the settings of one mode.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

// Which of the two kinds of connection; see ucx_transport.h.
enum class UcxMode { kLocal, kRemote };

// "UNAVAILABLE: <what>: <UCX's words>".
absl::Status UcxError(const char* what, ucs_status_t status);

// UCX_TLS in force: `option` if not empty, else the environment's; empty where neither says
// anything.
std::string ConfiguredTransports(const std::string& option);
// Whether a value of UCX_TLS lets shared memory be used.
bool AllowsSharedMemory(std::string_view transports);

class UcxContext {
 public:
  // `transports` as of ConfiguredTransports; `network_interface` is where connections come from,
  // empty for all, and `ipv6` whether by IPv6.
  static absl::StatusOr<std::shared_ptr<UcxContext>> Create(UcxMode mode,
                                                            const std::string& transports,
                                                            const std::string& network_interface,
                                                            bool ipv6);
  ~UcxContext() { ucp_cleanup(handle_); }
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  ucp_context_h handle() const { return handle_; }
  UcxMode mode() const { return mode_; }
  ucp_err_handling_mode_t error_mode() const {
    return mode_ == UcxMode::kLocal ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  }

 private:
  UcxContext(ucp_context_h handle, UcxMode mode) : handle_(handle), mode_(mode) {}
  ucp_context_h handle_;
  UcxMode mode_;
};

}  // namespace weft
