#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/host_address.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/grpc_transport/data_streams.h"
#include "rpc_backend/protocol/grpc_transport/port_core.h"

namespace weft {
namespace {

using PortPlace = ClientDataStream::Place;

constexpr size_t kNumberDigits = 16;

std::string PlaceText(const std::string& server, int64_t number) {
  return absl::StrCat(server, "/", absl::StrFormat("%016x", number));
}

absl::StatusOr<PortPlace> ParsePlace(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", EscapedText(text, 100), "' is no address of a gRPC port"));
  };
  if (static_cast<int64_t>(text.size()) > kMaxPortAddressBytes) return bad();
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) return bad();
  }
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos || text.size() - slash - 1 != kNumberDigits) return bad();
  PortPlace place;
  place.text = std::string(text);
  const std::string server(text.substr(0, slash));
  if (!absl::SimpleHexAtoi(AbslView(text.substr(slash + 1)), &place.number)) return bad();
  absl::StatusOr<HostAddress> parsed = ParseHostAddress(server, 0);
  if (!parsed.ok()) return bad();
  place.server = *std::move(parsed);
  const bool socket = !place.server.socket_path.empty();
  place.target = socket ? server : absl::StrCat("dns:///", server);
  return place;
}

class GrpcPort final : public MessagePort {
 public:
  GrpcPort(std::shared_ptr<GrpcPortRegistry> registry, const std::string& server,
           const WireSecurity& security, const PortOptions& options)
      : registry_(std::move(registry)),
        security_(security),
        core_(std::make_shared<GrpcPortCore>(options)) {
    number_ = registry_->Add(core_);
    address_ = server.empty() ? "-" : PlaceText(server, number_);
    core_->SetAddress(address_);
  }
  ~GrpcPort() override {
    registry_->Remove(number_);
    core_->Shutdown();
  }

  const std::string& address() const override { return address_; }

  absl::Status Expect(const PortPeer& peer) override {
    MutexLock lock(core_->mutex());
    return core_->inbox().AddPeer(peer);
  }

  absl::Status Connect(const PortPeer& peer, std::string_view address,
                       Clock::TimePoint deadline) override {
    ASSIGN_OR_RETURN(const PeerNonce nonce, NewPeerNonce());
    {
      MutexLock lock(core_->mutex());
      RETURN_IF_ERROR(core_->inbox().AddPeer(peer));
    }
    const absl::StatusOr<PortPlace> place = ParsePlace(address);
    auto credentials = place.ok() ? CredentialsTowards(security_, place->server) : place.status();
    if (!credentials.ok()) {
      MutexLock lock(core_->mutex());
      core_->inbox().RemovePeer(peer.number);
      return credentials.status();
    }
    ClientDataStream::Start(core_, peer, *place, nonce, *credentials);
    return core_->AwaitWelcome(peer.number, deadline);
  }

  absl::Status AwaitPeers(Clock::TimePoint deadline) override {
    MutexLock lock(core_->mutex());
    Inbox& inbox = core_->inbox();
    Inbox::Waiter waiter({.kinds = 0});
    inbox.Enter(waiter);
    std::optional<absl::Status> result = inbox.AllConnected();
    bool in_time = true;
    while (!result.has_value() && in_time) {
      in_time = waiter.changed.WaitUntil(core_->mutex(), deadline);
      result = inbox.AllConnected();
    }
    inbox.Leave(waiter);
    return result.has_value() ? *result : inbox.PeersMissing();
  }

  absl::Status Send(int32_t peer, const MessageHeader& header,
                    absl::Span<const absl::Span<const uint8_t>> parts) override;
  absl::StatusOr<Message> Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                  const std::atomic<bool>* stop) override;
  void Progress() override {}

  void Wake() override {
    MutexLock lock(core_->mutex());
    core_->inbox().WakeAll();
  }

  void Abort(absl::Status reason) override {
    MutexLock lock(core_->mutex());
    core_->inbox().Abort(std::move(reason));
    core_->WakeAll();
  }

  absl::Status failure() override {
    MutexLock lock(core_->mutex());
    return core_->inbox().failure();
  }

  std::vector<PeerTraffic> traffic() override {
    MutexLock lock(core_->mutex());
    return core_->inbox().traffic();
  }

 private:
  const std::shared_ptr<GrpcPortRegistry> registry_;  // shared with the transport
  const WireSecurity security_;
  const std::shared_ptr<GrpcPortCore> core_;  // shared with streams that gRPC still holds
  const SystemClock clock_;
  int64_t number_ = 0;
  std::string address_;
};

absl::Status GrpcPort::Send(int32_t peer, const MessageHeader& header,
                            absl::Span<const absl::Span<const uint8_t>> parts) {
  size_t size = 0;
  for (const absl::Span<const uint8_t> part : parts) size += part.size();
  std::string payload;
  payload.reserve(size);
  for (const absl::Span<const uint8_t> part : parts) {
    payload.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  const auto bytes = static_cast<int64_t>(size);
  MutexLock lock(core_->mutex());
  Inbox& inbox = core_->inbox();
  RETURN_IF_ERROR(inbox.CheckOutgoing(peer, header, bytes));
  const PortLimits& limits = core_->options().limits;
  const Clock::TimePoint deadline = clock_.Now() + limits.send_timeout;
  DataLink& link = *core_->FindLink(peer);
  bool in_time = true;
  while (link.outgoing_bytes() > 0 &&
         link.outgoing_bytes() + bytes > limits.outgoing_bytes_per_peer) {
    if (!in_time) return inbox.SendTimedOut(peer, header);
    in_time = core_->AwaitSent(deadline);
    RETURN_IF_ERROR(inbox.CheckPeer(peer));
  }
  inbox.CountSent(peer, header.kind, bytes);
  link.Post(header, std::move(payload));
  return absl::OkStatus();
}

absl::StatusOr<Message> GrpcPort::Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                          const std::atomic<bool>* stop) {
  MutexLock lock(core_->mutex());
  Inbox& inbox = core_->inbox();
  Inbox::Waiter waiter(filter, stop);
  inbox.Enter(waiter);
  core_->FetchWanted();
  std::optional<absl::StatusOr<Message>> result = inbox.Poll(waiter);
  bool in_time = true;
  while (!result.has_value() && in_time) {
    in_time = waiter.changed.WaitUntil(core_->mutex(), deadline);
    result = inbox.Poll(waiter);
  }
  inbox.Leave(waiter);
  core_->FetchWanted();
  return result.has_value() ? *std::move(result) : inbox.TimedOut(filter);
}

class DataService final : public proto::WorkerData::CallbackService {
 public:
  explicit DataService(std::shared_ptr<GrpcPortRegistry> registry)
      : registry_(std::move(registry)) {}

  grpc::ServerBidiReactor<proto::DataMessage, proto::DataMessage>* Messages(
      grpc::CallbackServerContext* context) override {
    return ServerDataStream::Start(registry_, *context);
  }

 private:
  const std::shared_ptr<GrpcPortRegistry> registry_;
};

}  // namespace

GrpcTransport::GrpcTransport(std::string address, const WireSecurity& security, Logger* logger)
    : security_(security),
      address_(std::move(address)),
      registry_(std::make_shared<GrpcPortRegistry>(logger)),
      service_(std::make_unique<DataService>(registry_)) {}

GrpcTransport::~GrpcTransport() = default;

absl::StatusOr<std::unique_ptr<MessagePort>> GrpcTransport::NewPort(const PortOptions& options) {
  RETURN_IF_ERROR(CheckPortOptions(options));
  return std::make_unique<GrpcPort>(registry_, address_, security_, options);
}

grpc::Service& GrpcTransport::service() { return *service_; }

}  // namespace weft
