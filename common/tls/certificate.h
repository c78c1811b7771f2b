// What a certificate says: whose it is, for how long, and in which role its owner may act.
//
// The role stands in a URI among its alternative names, so that a certificate authority of any kind
// (`weft certs`, cert-manager) can give it: weft://coordinator or weft://worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

inline constexpr int64_t kDaySeconds = 86400;
// People are told so long before a certificate ends.
inline constexpr int64_t kSoonEndingDays = 14;

// kBoth is what a certificate of another authority may say. It counts as no role: nobody may be
// both.
enum class TlsRole { kNone, kCoordinator, kWorker, kBoth };

// "coordinator", "worker"; "none", "both".
std::string_view RoleText(TlsRole role);
// "weft://coordinator"; empty for kNone and kBoth.
std::string_view RoleUri(TlsRole role);
// The role that one of these names, which may be others' as well.
TlsRole RoleOfUris(const std::vector<std::string>& uris);

// Texts are fit to print.
struct CertificateFacts {
  std::string name;  // its subject's common name, or what stands there instead
  std::string issuer;
  TlsRole role = TlsRole::kNone;
  std::vector<std::string> hosts;  // DNS names and IP addresses
  int64_t not_before = 0;          // seconds of Unix time
  int64_t not_after = 0;
  std::string sha256;  // of its DER form, hexadecimal
};

// Of the first certificate of a PEM text. Errors: INVALID_ARGUMENT.
absl::StatusOr<CertificateFacts> ReadCertificateFacts(std::string_view pem);

// Whether the first certificate of a PEM text names that host: a DNS name (wildcards as in RFC
// 6125) or an IP address. Errors: INVALID_ARGUMENT.
absl::StatusOr<bool> CertificateNamesHost(std::string_view pem, const std::string& host);

// "'gpu1' (worker; names gpu1, 10.0.0.2)": for errors.
std::string CertificateText(const CertificateFacts& facts);

// Whether whoever shows that PEM text may be the process of that role at `host`: the certificate's
// role, and that it names the host. Errors: UNAUTHENTICATED ("its certificate ...", and what to
// do); INVALID_ARGUMENT.
absl::Status CheckPeerCertificate(std::string_view pem, TlsRole role, const std::string& host);

// Its days are over, or have not begun. FAILED_PRECONDITION with both times.
absl::Status CheckCertificateDates(const CertificateFacts& facts, int64_t now);

// "2026-11-30 12:00:00 UTC".
std::string UtcText(int64_t unix_seconds);

}  // namespace weft
