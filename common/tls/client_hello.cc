#include "common/tls/client_hello.h"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kRecordHeaderBytes = 5;
constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHello = 1;
constexpr size_t kRandomBytes = 32;
constexpr uint64_t kSupportedVersions = 43;
constexpr uint64_t kTls13 = 0x0304;

// Takes fields from the front; once one is missing everything is.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }
  // A number, highest byte first.
  uint64_t Number(size_t size) {
    uint64_t value = 0;
    for (const char c : Bytes(size)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view Bytes(size_t size) {
    if (!ok_ || bytes_.size() < size) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // Bytes behind their number, which has `size` bytes.
  std::string_view Vector(size_t size) { return Bytes(Number(size)); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// Nothing where the message is malformed.
std::optional<bool> OffersTls13(std::string_view message) {
  Fields hello(message);
  hello.Number(2);  // legacy_version
  hello.Bytes(kRandomBytes);
  hello.Vector(1);  // legacy_session_id
  hello.Vector(2);  // cipher_suites
  hello.Vector(1);  // legacy_compression_methods
  if (!hello.ok()) return std::nullopt;
  if (hello.empty()) return false;  // TLS 1.2 needs no extensions
  Fields extensions(hello.Vector(2));
  if (!hello.ok()) return std::nullopt;
  while (!extensions.empty()) {
    const uint64_t type = extensions.Number(2);
    Fields body(extensions.Vector(2));
    if (!extensions.ok()) return std::nullopt;
    if (type != kSupportedVersions) continue;
    Fields versions(body.Vector(1));
    while (body.ok() && !versions.empty()) {
      if (versions.Number(2) == kTls13 && versions.ok()) return true;
    }
    return body.ok() && versions.ok() ? std::optional<bool>(false) : std::nullopt;
  }
  return false;
}

}  // namespace

FirstBytes ReadFirstBytes(std::string_view bytes) {
  if (bytes.empty()) return FirstBytes::kIncomplete;
  const size_t known = std::min(bytes.size(), kHttp2Preface.size());
  if (bytes.substr(0, known) == kHttp2Preface.substr(0, known)) {
    return known == kHttp2Preface.size() ? FirstBytes::kHttp2 : FirstBytes::kIncomplete;
  }
  Fields record(bytes);
  if (record.Number(1) != kHandshakeRecord) return FirstBytes::kOther;
  if (bytes.size() < kRecordHeaderBytes) return FirstBytes::kIncomplete;
  if (record.Number(1) != 3) return FirstBytes::kOther;
  record.Number(1);  // minor version: 1 or 3 by habit
  const uint64_t size = record.Number(2);
  if (size + kRecordHeaderBytes > kMaxClientHelloBytes || size < 4) return FirstBytes::kOther;
  const std::string_view payload = record.Bytes(size);
  if (!record.ok()) return FirstBytes::kIncomplete;
  Fields handshake(payload);
  if (handshake.Number(1) != kClientHello) return FirstBytes::kOther;
  // One that is spread over several records is no client of ours.
  const std::string_view message = handshake.Vector(3);
  if (!handshake.ok()) return FirstBytes::kOther;
  const std::optional<bool> offers = OffersTls13(message);
  if (!offers.has_value()) return FirstBytes::kOther;
  return *offers ? FirstBytes::kTls13 : FirstBytes::kOldTls;
}

std::string ProtocolVersionAlert() {
  constexpr char kAlertRecord = 21;
  constexpr char kFatal = 2;
  constexpr char kProtocolVersion = 70;
  return {kAlertRecord, 3, 3, 0, 2, kFatal, kProtocolVersion};
}

}  // namespace weft
