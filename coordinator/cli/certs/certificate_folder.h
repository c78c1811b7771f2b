// `weft certs`: a folder with a private certificate authority and, for each process, one that goes
// to its machine.
//
//   DIR/ca.crt DIR/ca.key             the authority; ca.key stays where it is
//   DIR/coordinator/{ca.crt,tls.crt,tls.key}
//   DIR/NAME/{ca.crt,tls.crt,tls.key}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls/certificate.h"

namespace weft {

inline constexpr int32_t kAuthorityDays = 3650;
inline constexpr int32_t kCertificateDays = 365;

struct CertsOptions {
  std::string folder = {};
  std::string name = {};                // of a worker
  std::vector<std::string> hosts = {};  // more names of the machine
  int32_t days = kCertificateDays;
};

// What was written.
struct IssuedCertificate {
  std::string folder;  // for --tls
  CertificateFacts facts;
};

// Makes a new authority and the coordinator's certificate. Errors: ALREADY_EXISTS where there is an
// authority; those of files, naming the path; INVALID_ARGUMENT for hosts and days.
absl::StatusOr<IssuedCertificate> InitializeCerts(const CertsOptions& options, int64_t now);

// Makes or renews a certificate signed by the folder's authority: the coordinator's, or that of a
// worker. It does not outlive the authority. Files are replaced whole, key first, so that running
// processes take the new ones up. Errors: as above; NOT_FOUND where there is no authority;
// FAILED_PRECONDITION where something else than a file is in a file's place.
absl::StatusOr<IssuedCertificate> IssueCoordinator(const CertsOptions& options, int64_t now);
absl::StatusOr<IssuedCertificate> IssueWorker(const CertsOptions& options, int64_t now);

// Writes a new token for --join-token-file: 64 hexadecimal digits of 32 random bytes, for the
// owner's eyes only. A file of that name is replaced, but nothing else: no link, device or pipe.
// Errors: those of files, naming the path; FAILED_PRECONDITION for what is not replaced.
absl::Status WriteJoinToken(const std::string& path);

// The name becomes a folder's and a DNS name: one host name without wildcard, and none that this
// layout uses. Errors: INVALID_ARGUMENT.
absl::Status CheckWorkerName(std::string_view name);

}  // namespace weft
