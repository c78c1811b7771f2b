// Makes keys and X.509 certificates: a private authority's and those that it signs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls/certificate.h"

namespace weft {

struct CertificateRequest {
  std::string name = {};                // common name
  TlsRole role = TlsRole::kNone;        // kNone: an authority
  std::vector<std::string> hosts = {};  // DNS names ("*.example" too) and IP addresses
  int64_t not_before = 0;               // seconds of Unix time
  int64_t not_after = 0;
};

// Both PEM; the key unencrypted (PKCS #8).
struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

// Whether a certificate may name that host: letters, digits, '-', '.', one leading "*."; or an IP
// address. Errors: INVALID_ARGUMENT with the text.
absl::Status CheckHostName(std::string_view host);

// A new key on P-256, and its certificate (version 3, with key usages). An authority signs itself
// and signs for others only directly; everybody else is signed by `issuer`. A certificate of a
// role is for both ends of a connection, since workers connect to each other. Errors:
// INVALID_ARGUMENT for hosts, dates, or an issuer that is none; INTERNAL of OpenSSL.
absl::StatusOr<KeyAndCertificate> MakeAuthority(const CertificateRequest& request);
absl::StatusOr<KeyAndCertificate> MakeCertificate(const CertificateRequest& request,
                                                  const KeyAndCertificate& issuer);

}  // namespace weft
