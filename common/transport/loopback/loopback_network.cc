#include "common/transport/loopback/loopback_network.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/transport/inbox.h"
#include "common/transport/loopback/loopback_core.h"

namespace weft {
namespace {

using Core = LoopbackNetwork::Core;

class LoopbackPort final : public MessagePort {
 public:
  LoopbackPort(std::shared_ptr<Core> core, const PortOptions& options)
      : core_(std::move(core)), mutex_(core_->mutex()) {
    MutexLock lock(mutex_);
    port_ = &core_->Add(options);
    address_ = port_->address;
  }

  ~LoopbackPort() override {
    MutexLock lock(mutex_);
    core_->Remove(*port_);
  }

  const std::string& address() const override { return address_; }

  absl::Status Expect(const PortPeer& peer) override {
    MutexLock lock(mutex_);
    return port_->inbox.AddPeer(peer);
  }

  absl::Status Connect(const PortPeer& peer, std::string_view address,
                       Clock::TimePoint /*deadline*/) override {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(port_->inbox.AddPeer(peer));
    absl::Status status = core_->Connect(*port_, peer, address);
    if (!status.ok()) port_->inbox.RemovePeer(peer.number);
    return status;
  }

  absl::Status AwaitPeers(Clock::TimePoint deadline) override {
    MutexLock lock(mutex_);
    Inbox& inbox = port_->inbox;
    Inbox::Waiter waiter({.kinds = 0});
    inbox.Enter(waiter);
    std::optional<absl::Status> result = inbox.AllConnected();
    bool in_time = true;
    while (!result.has_value() && in_time) {
      in_time = waiter.changed.WaitUntil(mutex_, deadline);
      result = inbox.AllConnected();
    }
    inbox.Leave(waiter);
    return result.has_value() ? *result : inbox.PeersMissing();
  }

  absl::Status Send(int32_t peer, const MessageHeader& header,
                    absl::Span<const absl::Span<const uint8_t>> parts) override {
    Payload payload;
    for (const absl::Span<const uint8_t> part : parts) {
      payload.insert(payload.end(), part.begin(), part.end());
    }
    const int64_t bytes = static_cast<int64_t>(payload.size());
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(port_->inbox.CheckOutgoing(peer, header, bytes));
    const PortLimits& limits = port_->options.limits;
    const Clock::TimePoint deadline = clock_.Now() + limits.send_timeout;
    bool in_time = true;
    while (port_->links[peer].outgoing_bytes > 0 &&
           port_->links[peer].outgoing_bytes + bytes > limits.outgoing_bytes_per_peer) {
      if (!in_time) return port_->inbox.SendTimedOut(peer, header);
      in_time = port_->sent.WaitUntil(mutex_, deadline);
      RETURN_IF_ERROR(port_->inbox.CheckPeer(peer));
    }
    port_->inbox.CountSent(peer, header.kind, bytes);
    core_->Post(*port_, peer, header, std::move(payload));
    return absl::OkStatus();
  }

  absl::StatusOr<Message> Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                  const std::atomic<bool>* stop) override {
    MutexLock lock(mutex_);
    Inbox& inbox = port_->inbox;
    Inbox::Waiter waiter(filter, stop);
    inbox.Enter(waiter);
    core_->Fetch(*port_);
    std::optional<absl::StatusOr<Message>> result = inbox.Poll(waiter);
    bool in_time = true;
    while (!result.has_value() && in_time) {
      in_time = waiter.changed.WaitUntil(mutex_, deadline);
      result = inbox.Poll(waiter);
    }
    inbox.Leave(waiter);
    core_->Fetch(*port_);
    return result.has_value() ? *std::move(result) : inbox.TimedOut(filter);
  }

  void Progress() override {}

  void Wake() override {
    MutexLock lock(mutex_);
    port_->inbox.WakeAll();
  }

  void Abort(absl::Status reason) override {
    MutexLock lock(mutex_);
    port_->inbox.Abort(std::move(reason));
    port_->sent.NotifyAll();
  }

  absl::Status failure() override {
    MutexLock lock(mutex_);
    return port_->inbox.failure();
  }

  std::vector<PeerTraffic> traffic() override {
    MutexLock lock(mutex_);
    return port_->inbox.traffic();
  }

 private:
  std::shared_ptr<Core> core_;  // shared with the network and its other ports
  Mutex& mutex_;
  SystemClock clock_;
  Core::Port* port_ = nullptr;
  std::string address_;
};

class LoopbackTransport final : public Transport {
 public:
  explicit LoopbackTransport(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) override {
    RETURN_IF_ERROR(CheckPortOptions(options));
    return std::make_unique<LoopbackPort>(core_, options);
  }

 private:
  std::string name_ = "loopback";
  std::shared_ptr<Core> core_;  // shared with the network and its ports
};

}  // namespace

LoopbackNetwork::LoopbackNetwork() : core_(std::make_shared<Core>()) {}
LoopbackNetwork::~LoopbackNetwork() = default;

std::unique_ptr<Transport> LoopbackNetwork::NewTransport() {
  return std::make_unique<LoopbackTransport>(core_);
}

void LoopbackNetwork::SetRule(LoopbackRule rule) { core_->SetRule(std::move(rule)); }
void LoopbackNetwork::ReleaseHeld() { core_->ReleaseHeld(); }
int64_t LoopbackNetwork::held_messages() const { return core_->held_messages(); }
void LoopbackNetwork::Disconnect(std::string_view address, std::string_view other) {
  core_->Disconnect(address, other);
}

}  // namespace weft
