#include "common/transport/ucx/ucx_transport.h"

#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/transport/host_identity.h"
#include "common/transport/ucx/ucx_port.h"

namespace weft {
namespace {

class UcxTransport final : public Transport {
 public:
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const UcxTransportOptions& options) {
    auto transport = absl::WrapUnique(new UcxTransport());
    RETURN_IF_ERROR(transport->ResolveAddresses(options));
    const std::string transports = ConfiguredTransports(options.transports);
    RETURN_IF_ERROR(transport->MakeContexts(transports));
    return transport;
  }

  const std::string& name() const override { return name_; }

  absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) override {
    RETURN_IF_ERROR(CheckPortOptions(options));
    return UcxPort::Create(setup_, options);
  }

 private:
  absl::Status ResolveAddresses(const UcxTransportOptions& options) {
    if (options.port_count < 1 || options.first_port + options.port_count - 1 > 65535) {
      return absl::InvalidArgumentError("the range of data ports is empty or ends beyond 65535");
    }
    ASSIGN_OR_RETURN(SocketAddress bound, ResolveHost(options.bind_host, 0));
    if (IsWildcard(bound) && options.announce_host.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("a data address of ", options.bind_host,
                                                     " needs an address to announce to others"));
    }
    ASSIGN_OR_RETURN(const SocketAddress loopback, ResolveHost("127.0.0.1", 0));
    setup_.local_addresses = {loopback};
    setup_.host_identity = HostIdentity();
    this_machine_only_ = IsLoopback(bound);
    // UCX finds no interface for ::1.
    if (this_machine_only_ && bound.storage.ss_family == AF_INET6) bound = loopback;
    setup_.announced = bound;
    interfaces_ = {InterfaceOf(bound)};
    if (!options.announce_host.empty()) {
      ASSIGN_OR_RETURN(setup_.announced, ResolveHost(options.announce_host, 0));
      // Where others reach this machine by a foreign address (a translated one), by that of its
      // own.
      std::string interface = InterfaceOf(setup_.announced);
      if (!interface.empty()) interfaces_ = {std::move(interface)};
    }
    for (const std::string& own : options.more_own_addresses) {
      ASSIGN_OR_RETURN(const SocketAddress address, ResolveHost(own, 0));
      interfaces_.insert(InterfaceOf(address));
    }
    interfaces_.erase("");
    for (int i = 0; i < (options.first_port == 0 ? 1 : options.port_count); ++i) {
      setup_.remote_addresses.push_back(bound);
      SetPort(setup_.remote_addresses.back(), static_cast<uint16_t>(options.first_port + i));
    }
    return absl::OkStatus();
  }

  absl::Status MakeContexts(const std::string& transports) {
    if (AllowsSharedMemory(transports)) {
      absl::StatusOr<std::shared_ptr<UcxContext>> local =
          UcxContext::Create(UcxMode::kLocal, transports, "lo", false);
      // Without shared memory (none mounted, or full) processes of one machine still reach each
      // other as those of several do.
      if (local.ok() && UcxPort::Create({.local = *local,
                                         .remote = nullptr,
                                         .local_addresses = setup_.local_addresses,
                                         .remote_addresses = {},
                                         .announced = {},
                                         .host_identity = ""},
                                        PortOptions())
                            .ok()) {
        setup_.local = *std::move(local);
        if (this_machine_only_) return absl::OkStatus();
      }
    }
    ASSIGN_OR_RETURN(
        setup_.remote,
        UcxContext::Create(UcxMode::kRemote, transports, absl::StrJoin(interfaces_, ","),
                           setup_.announced.storage.ss_family == AF_INET6));
    return absl::OkStatus();
  }

  std::string name_ = "ucx";
  std::set<std::string> interfaces_;  // that may carry connections; all if empty
  UcxPort::Setup setup_;
  bool this_machine_only_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> NewUcxTransport(const UcxTransportOptions& options) {
  return UcxTransport::Create(options);
}

}  // namespace weft
