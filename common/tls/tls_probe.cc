#include "common/tls/tls_probe.h"

#include <netdb.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/unix_time.h"
#include "common/tls/openssl_objects.h"

namespace weft {
namespace {

constexpr char kPlaintextThere[] =
    "it speaks plaintext: start it with --tls DIR, or leave --tls out here";
constexpr char kTlsThere[] = "it speaks TLS: pass --tls DIR (docs/security.md)";
// The protocol that gRPC wants, with its length.
constexpr std::array<unsigned char, 3> kHttp2Protocol = {2, 'h', '2'};

// A connection that is not blocking, and waits no longer than its deadline.
class ProbeSocket {
 public:
  ProbeSocket(const Clock& clock, Clock::TimePoint deadline) : clock_(clock), deadline_(deadline) {}
  ~ProbeSocket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  int descriptor() const { return descriptor_; }

  bool Connect(const HostAddress& address) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
        0) {
      return false;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      if (descriptor_ >= 0) close(descriptor_);
      descriptor_ = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (descriptor_ < 0) continue;
      if (connect(descriptor_, at->ai_addr, at->ai_addrlen) == 0) return true;
      if (errno != EINPROGRESS || !Wait(POLLOUT)) continue;
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
        return true;
      }
    }
    return false;
  }

  bool Wait(short events) {  // NOLINT(google-runtime-int): poll's type
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.Now());
    pollfd waiting = {descriptor_, events, 0};
    return poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) == 1;
  }

 private:
  const Clock& clock_;
  const Clock::TimePoint deadline_;
  int descriptor_ = -1;
};

enum class Outcome { kDone, kFailed, kClosed, kLate };

OpenSslPointer<SSL_CTX> MakeContext(const TlsFolder* own) {
  OpenSslPointer<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  // What is wrong with the other certificate is asked afterwards.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_alpn_protos(context.get(), kHttp2Protocol.data(), kHttp2Protocol.size());
  if (own == nullptr) return context;
  const std::string certificate = own->File(kCertificateFile);
  const std::string key = own->File(kKeyFile);
  const std::string authorities = own->File(kAuthorityFile);
  // As they are now: they may have been renewed. Missing ones show in the handshake.
  SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str());
  SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_load_verify_locations(context.get(), authorities.c_str(), nullptr);
  return context;
}

// The server at an address, asked by a client of TLS.
class ProbedServer {
 public:
  ProbedServer(const Clock& clock, Clock::TimePoint deadline) : socket_(clock, deadline) {}

  // Whether there is a connection to shake hands on.
  bool Connect(const HostAddress& address, const TlsFolder* own) {
    if (address.host.empty() || !socket_.Connect(address)) return false;
    context_ = MakeContext(own);
    if (context_ == nullptr) return false;
    connection_.reset(SSL_new(context_.get()));
    return connection_ != nullptr && SSL_set_fd(ssl(), socket_.descriptor()) == 1;
  }

  Outcome ShakeHands() {
    (void)TakeOpenSslError();
    return Drive([this] { return SSL_connect(ssl()); });
  }

  Outcome ReadByte() {
    char byte = 0;
    return Drive([this, &byte] { return SSL_read(ssl(), &byte, 1); });
  }

  // After the handshake; null: it shows none.
  OpenSslPointer<X509> Certificate() const {
    return OpenSslPointer<X509>(SSL_get1_peer_certificate(ssl()));
  }
  // Why its certificate is not from the authority of this side; null: it is.
  const char* StrangeAuthority() const {
    const auto result = SSL_get_verify_result(ssl());
    return result == X509_V_OK ? nullptr : X509_verify_cert_error_string(result);
  }

 private:
  SSL* ssl() const { return connection_.get(); }

  // Runs one operation of OpenSSL to its end.
  template <typename Operation>
  Outcome Drive(Operation operation) {
    while (true) {
      const int result = operation();
      if (result > 0) return Outcome::kDone;
      switch (SSL_get_error(ssl(), result)) {
        case SSL_ERROR_WANT_READ:
          if (!socket_.Wait(POLLIN)) return Outcome::kLate;
          break;
        case SSL_ERROR_WANT_WRITE:
          if (!socket_.Wait(POLLOUT)) return Outcome::kLate;
          break;
        case SSL_ERROR_SSL:
          return Outcome::kFailed;
        default:
          return Outcome::kClosed;
      }
    }
  }

  ProbeSocket socket_;
  OpenSslPointer<SSL_CTX> context_;
  OpenSslPointer<SSL> connection_;
};

std::string PemOf(X509* certificate) {
  const OpenSslPointer<BIO> out(BIO_new(BIO_s_mem()));
  if (out == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) return "";
  return TextOf(out.get());
}

std::string CertificateComplaint(const ProbedServer& server, TlsRole role,
                                 const std::string& host) {
  const OpenSslPointer<X509> certificate = server.Certificate();
  if (certificate == nullptr) return "";
  const std::string pem = PemOf(certificate.get());
  const auto facts = ReadCertificateFacts(pem);
  if (!facts.ok()) return "its certificate cannot be read";
  if (const absl::Status dates = CheckCertificateDates(*facts, UnixSeconds()); !dates.ok()) {
    return absl::StrCat("its ", dates.message());
  }
  if (const char* const why = server.StrangeAuthority(); why != nullptr) {
    return absl::StrCat("its certificate ", CertificateText(*facts),
                        " is not from the authority in ", kAuthorityFile, " here: ", why);
  }
  return std::string(CheckPeerCertificate(pem, role, host).message());
}

std::string FailureText(const TlsFolder* own) {
  const std::string reason = TakeOpenSslError();
  for (const char* const part :
       {"wrong version number", "http request", "packet length too long", "record layer failure"}) {
    if (absl::StrContains(reason, part)) return own == nullptr ? "" : kPlaintextThere;
  }
  if (absl::StrContains(reason, "protocol version") ||
      absl::StrContains(reason, "unsupported protocol")) {
    return "it does not speak TLS 1.3";
  }
  if (own == nullptr) return kTlsThere;  // it answered in TLS, whatever it said
  if (!absl::StrContains(reason, "alert")) return absl::StrCat("TLS: ", reason);
  return absl::StrCat("it refuses certificate '", own->facts.name, "' of this side: ", reason);
}

// After the handshake the server still has to accept our certificate; then gRPC speaks first.
TlsExplanation AwaitWelcome(ProbedServer& server, const TlsFolder& own) {
  switch (server.ReadByte()) {
    case Outcome::kFailed:
      return {FailureText(&own), true};
    case Outcome::kClosed:
      // TLS has a word for why; gRPC does not send it.
      return {absl::StrCat("it closed the connection after it had seen certificate '",
                           own.facts.name, "' of this side, by '", own.facts.issuer, "', until ",
                           UtcText(own.facts.not_after),
                           ": its ca.crt or its clock may differ; its log has a line"),
              false};
    case Outcome::kDone:
    case Outcome::kLate:
      break;
  }
  return {};
}

}  // namespace

TlsExplanation ExplainTlsFailure(const HostAddress& address, const ExpectedPeer& peer,
                                 const TlsFolder* own, const Clock& clock,
                                 Clock::TimePoint deadline) {
  ProbedServer server(clock, deadline);
  if (!server.Connect(address, own)) return {};
  switch (server.ShakeHands()) {
    case Outcome::kFailed: {
      std::string text = FailureText(own);
      const bool certain = !text.empty();
      return {std::move(text), certain};
    }
    case Outcome::kDone:
      break;
    case Outcome::kClosed:
      if (own == nullptr) return {};
      return {"it closed the connection: is it started with --tls, or has it too many?", false};
    case Outcome::kLate:
      return {};
  }
  if (own == nullptr) return {kTlsThere, true};
  std::string complaint =
      CertificateComplaint(server, peer.role, peer.name.empty() ? address.host : peer.name);
  if (!complaint.empty()) return {std::move(complaint), true};
  return AwaitWelcome(server, *own);
}

absl::StatusOr<CertificateFacts> ReadServerCertificate(const HostAddress& address,
                                                       const TlsFolder& own, const Clock& clock,
                                                       Clock::TimePoint deadline) {
  const absl::Status none =
      absl::UnavailableError(absl::StrCat("no handshake with ", address.Text()));
  ProbedServer server(clock, deadline);
  if (!server.Connect(address, &own)) return none;
  const Outcome outcome = server.ShakeHands();
  (void)TakeOpenSslError();
  const OpenSslPointer<X509> certificate = server.Certificate();
  if (outcome != Outcome::kDone || certificate == nullptr) return none;
  return ReadCertificateFacts(PemOf(certificate.get()));
}

}  // namespace weft
