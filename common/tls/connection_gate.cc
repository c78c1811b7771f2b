#include "common/tls/connection_gate.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/tls/client_hello.h"

namespace weft {
namespace {

constexpr int kBacklog = 128;
constexpr std::chrono::milliseconds kPause{100};
constexpr size_t kNetworkBytes = 8;  // of an IPv6 address that one customer is given
constexpr size_t kIp4Bytes = 4;
constexpr int kAcceptsAtOnce = 64;

struct PeerName {
  std::string host;  // bytes
  std::string name;
};

// Also of an IPv4 address that an IPv6 socket shows.
PeerName NameOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(address);
  const auto* const bytes = reinterpret_cast<const char*>(&ip6.sin6_addr);
  const bool old = address.ss_family == AF_INET;
  if (!old && !IN6_IS_ADDR_V4MAPPED(&ip6.sin6_addr)) {
    inet_ntop(AF_INET6, &ip6.sin6_addr, text.data(), text.size());
    return {{bytes, kNetworkBytes}, absl::StrCat("[", text.data(), "]:", ntohs(ip6.sin6_port))};
  }
  const char* const four =
      old ? reinterpret_cast<const char*>(&ip4.sin_addr) : bytes + sizeof(in6_addr) - kIp4Bytes;
  inet_ntop(AF_INET, four, text.data(), text.size());
  // The port stands at the same place in both families.
  return {{four, kIp4Bytes}, absl::StrCat(text.data(), ":", ntohs(ip4.sin_port))};
}

// Without the state that a socket has after it was closed in order.
void CloseAtOnce(int descriptor) {
  const linger now = {1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(descriptor);
}

// A socket that listens there, or -1. `port` becomes the one that was taken where it was 0.
int ListenOn(const addrinfo& where, int32_t& port) {
  const int listener =
      socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (listener < 0) return -1;
  sockaddr_storage place = {};
  std::memcpy(&place, where.ai_addr, where.ai_addrlen);
  // The port stands at the same place in both families.
  reinterpret_cast<sockaddr_in&>(place).sin_port = htons(static_cast<uint16_t>(port));
  const int on = 1;
  const int off = 0;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // connections inherit it
  if (where.ai_family == AF_INET6) {
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(listener, reinterpret_cast<const sockaddr*>(&place), where.ai_addrlen) != 0 ||
      listen(listener, kBacklog) != 0) {
    close(listener);
    return -1;
  }
  socklen_t size = sizeof place;
  getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size);
  port = ntohs(reinterpret_cast<const sockaddr_in&>(place).sin_port);
  return listener;
}

FirstBytes Wanted(GateProtocol protocol) {
  return protocol == GateProtocol::kTls13 ? FirstBytes::kTls13 : FirstBytes::kHttp2;
}

// What is wrong with a beginning that is not the one that is wanted.
std::string_view Complaint(FirstBytes first, GateProtocol wanted) {
  const bool tls = first == FirstBytes::kTls13 || first == FirstBytes::kOldTls;
  if (wanted == GateProtocol::kHttp2) {
    return tls ? "it speaks TLS; plaintext is wanted: start this side with --tls too"
               : "it does not speak gRPC";
  }
  switch (first) {
    case FirstBytes::kIncomplete:
    case FirstBytes::kTls13:
      return "";
    case FirstBytes::kOldTls:
      return "it speaks TLS 1.2 or older; 1.3 is wanted";
    case FirstBytes::kHttp2:
      return "it speaks plaintext; TLS is wanted: pass --tls there";
    case FirstBytes::kOther:
      break;
  }
  return "it does not speak TLS";
}

// What tells the other side what is spoken here, in its own terms; empty: there is no such word.
std::string LastWord(FirstBytes first, GateProtocol wanted) {
  const bool tls = first == FirstBytes::kTls13 || first == FirstBytes::kOldTls;
  if (wanted == GateProtocol::kTls13) {
    return first == FirstBytes::kOldTls ? ProtocolVersionAlert() : std::string();
  }
  // How servers begin: an empty frame of settings (RFC 9113, section 3.4).
  return tls ? std::string({0, 0, 0, 4, 0, 0, 0, 0, 0}) : std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionGate>> ConnectionGate::Listen(const HostAddress& address,
                                                                       const GateLimits& limits,
                                                                       const Clock& clock,
                                                                       Logger& logger,
                                                                       GateProtocol protocol) {
  std::unique_ptr<ConnectionGate> gate(new ConnectionGate(limits, clock, logger, protocol));
  gate->stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (gate->stop_ < 0) return absl::ErrnoToStatus(errno, "no eventfd");
  RETURN_IF_ERROR(gate->Bind(address));
  return gate;
}

ConnectionGate::~ConnectionGate() {
  Stop();
  if (stop_ >= 0) close(stop_);
}

absl::Status ConnectionGate::Bind(const HostAddress& address) {
  port_ = address.port;
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address.Text(), ": ", why));
  };
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), nullptr, &hints, &found); error != 0) {
    return failed(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  // A name may have addresses of both families where only one works.
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int listener = ListenOn(*at, port_);
    if (listener >= 0) listeners_.push_back(listener);
  }
  return listeners_.empty() ? failed("in use, or not of this machine") : absl::OkStatus();
}

absl::Status ConnectionGate::Start(Take take) {
  take_ = std::move(take);
  ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
  return absl::OkStatus();
}

void ConnectionGate::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  for (const int listener : listeners_) close(listener);
  listeners_.clear();
}

void ConnectionGate::Run() {
  while (Wait()) Expire();
  for (const auto& [descriptor, visitor] : visitors_) close(descriptor);
  visitors_.clear();
}

bool ConnectionGate::Wait() {
  std::vector<pollfd> waiting = {{stop_, POLLIN, 0}};
  if (clock_.Now() >= pause_until_) {
    for (const int listener : listeners_) waiting.push_back({listener, POLLIN, 0});
  }
  for (const auto& [descriptor, visitor] : visitors_) waiting.push_back({descriptor, POLLIN, 0});
  bool busy = !visitors_.empty() || refusals_.has_rest() || clock_.Now() < pause_until_;
  {
    MutexLock lock(mutex_);
    busy = busy || !admitted_.empty();
  }
  const int count =
      poll(waiting.data(), waiting.size(), busy ? static_cast<int>(kPause.count()) : -1);
  if (count <= 0) return true;
  if (waiting.front().revents != 0) return false;
  for (size_t i = 1; i < waiting.size(); ++i) {
    if (waiting[i].revents == 0) continue;
    const int descriptor = waiting[i].fd;
    if (std::find(listeners_.begin(), listeners_.end(), descriptor) != listeners_.end()) {
      Accept(descriptor);
    } else {
      Read(descriptor);
    }
  }
  return true;
}

void ConnectionGate::Accept(int listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    const int descriptor = accept4(listener, reinterpret_cast<sockaddr*>(&address), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      // Memory and descriptors come back; other errors are of that connection.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause_until_ = clock_.Now() + kPause;
        refusals_.Add("", "this process has no descriptors or memory left for connections");
      }
      return;
    }
    PeerName peer = NameOf(address);
    if (!TakePlace(peer.host)) {
      CloseAtOnce(descriptor);
      refusals_.Add(peer.name, "too many connections whose other side is not known yet");
      continue;
    }
    visitors_[descriptor] = {.host = std::move(peer.host),
                             .name = std::move(peer.name),
                             .bytes = {},
                             .deadline = clock_.Now() + limits_.first_bytes};
  }
}

void ConnectionGate::Read(int descriptor) {
  std::string& bytes = visitors_.at(descriptor).bytes;
  std::array<char, 4096> buffer = {};
  const size_t room = std::min(buffer.size(), kMaxClientHelloBytes - bytes.size());
  const ssize_t count = recv(descriptor, buffer.data(), room, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Refuse(descriptor, "");  // it went, as probes of ports do
  bytes.append(buffer.data(), static_cast<size_t>(count));
  const FirstBytes first = ReadFirstBytes(bytes);
  if (first == FirstBytes::kIncomplete) return;
  if (first == Wanted(protocol_)) return Admit(descriptor);
  const std::string word = LastWord(first, protocol_);
  if (!word.empty()) (void)send(descriptor, word.data(), word.size(), MSG_NOSIGNAL);
  Refuse(descriptor, Complaint(first, protocol_));
}

void ConnectionGate::Admit(int descriptor) {
  Visitor visitor = std::move(visitors_.at(descriptor));
  visitors_.erase(descriptor);
  {
    MutexLock lock(mutex_);
    const auto [at, fresh] = admitted_.try_emplace(std::move(visitor.name));
    // An earlier connection from the same port, closed since.
    if (!fresh) FreePlace(at->second.host);
    at->second = {std::move(visitor.host), clock_.Now() + limits_.handshake};
  }
  take_(descriptor, std::move(visitor.bytes));
}

void ConnectionGate::Refuse(int descriptor, std::string_view why) {
  const Visitor& visitor = visitors_.at(descriptor);
  if (!why.empty()) refusals_.Add(visitor.name, why);
  {
    MutexLock lock(mutex_);
    FreePlace(visitor.host);
  }
  visitors_.erase(descriptor);
  close(descriptor);
}

void ConnectionGate::SetKnown(std::string_view peer) {
  MutexLock lock(mutex_);
  const auto found = admitted_.find(peer);
  if (found == admitted_.end()) return;
  FreePlace(found->second.host);
  admitted_.erase(found);
}

bool ConnectionGate::TakePlace(const std::string& host) {
  MutexLock lock(mutex_);
  if (all_places_ >= limits_.connections) return false;
  size_t& places = places_[host];
  if (places >= limits_.connections_per_host) return false;
  ++places;
  ++all_places_;
  return true;
}

void ConnectionGate::FreePlace(const std::string& host) {
  --all_places_;
  const auto found = places_.find(host);
  if (--found->second == 0) places_.erase(found);
}

void ConnectionGate::Expire() {
  const Clock::TimePoint now = clock_.Now();
  {
    MutexLock lock(mutex_);
    for (auto at = admitted_.begin(); at != admitted_.end();) {
      if (at->second.until > now) {
        ++at;
        continue;
      }
      FreePlace(at->second.host);
      at = admitted_.erase(at);
    }
  }
  std::vector<int> late;
  for (const auto& [descriptor, visitor] : visitors_) {
    if (visitor.deadline <= now) late.push_back(descriptor);
  }
  for (const int descriptor : late) Refuse(descriptor, "it said nothing for too long");
  refusals_.SayRest();
}

}  // namespace weft
