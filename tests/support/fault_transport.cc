#include "tests/support/fault_transport.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/planted_fault.h"

namespace weft {
namespace {

class FaultPort final : public MessagePort {
 public:
  explicit FaultPort(std::unique_ptr<MessagePort> inner) : inner_(std::move(inner)) {}

  const std::string& address() const override { return inner_->address(); }
  absl::Status Expect(const PortPeer& peer) override { return inner_->Expect(peer); }
  absl::Status Connect(const PortPeer& peer, std::string_view address,
                       Clock::TimePoint deadline) override {
    return inner_->Connect(peer, address, deadline);
  }
  absl::Status AwaitPeers(Clock::TimePoint deadline) override {
    return inner_->AwaitPeers(deadline);
  }
  void StopListening() override { inner_->StopListening(); }
  absl::Status Send(int32_t peer, const MessageHeader& header,
                    absl::Span<const absl::Span<const uint8_t>> parts) override {
    const PlantedFault& fault = *planted_fault();
    if (header.kind != fault.kind) return inner_->Send(peer, header, parts);
    Count();
    if (!garble_.exchange(false)) return inner_->Send(peer, header, parts);
    const std::vector<uint8_t> garbage(64, 0xff);
    return SendBytes(*inner_, peer, header, garbage);
  }
  absl::StatusOr<Message> Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                  const std::atomic<bool>* stop) override {
    absl::StatusOr<Message> message = inner_->Receive(filter, deadline, stop);
    if (message.ok() && message->header.kind == planted_fault()->kind) Count();
    return message;
  }
  void Recycle(Payload&& payload) override { inner_->Recycle(std::move(payload)); }
  void Progress() override { inner_->Progress(); }
  void Wake() override { inner_->Wake(); }
  void Abort(absl::Status reason) override { inner_->Abort(std::move(reason)); }
  absl::Status failure() override { return inner_->failure(); }
  std::vector<PeerTraffic> traffic() override { return inner_->traffic(); }

 private:
  // One more of the kind came or goes; garbage goes out with the next that goes.
  void Count() {
    PlantedFault& fault = *planted_fault();
    if (fault.Strike() && fault.action == FaultAction::kGarbage) garble_ = true;
  }

  const std::unique_ptr<MessagePort> inner_;
  std::atomic<bool> garble_ = false;
};

class FaultTransport final : public Transport {
 public:
  explicit FaultTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  const std::string& name() const override { return inner_->name(); }
  absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) override {
    absl::StatusOr<std::unique_ptr<MessagePort>> port = inner_->NewPort(options);
    if (!port.ok()) return port.status();
    return std::make_unique<FaultPort>(*std::move(port));
  }

 private:
  const std::unique_ptr<Transport> inner_;
};

}  // namespace

std::unique_ptr<Transport> WithPlantedFault(std::unique_ptr<Transport> inner) {
  if (planted_fault() == nullptr || !planted_fault()->of_data) return inner;
  return std::make_unique<FaultTransport>(std::move(inner));
}

}  // namespace weft
