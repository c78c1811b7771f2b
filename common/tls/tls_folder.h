// A folder with what one process needs for TLS, under the names that Kubernetes gives the keys of a
// TLS secret: ca.crt (whom to trust), tls.crt (who this is, with intermediate certificates),
// tls.key.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls/certificate.h"

namespace weft {

inline constexpr char kAuthorityFile[] = "ca.crt";
inline constexpr char kCertificateFile[] = "tls.crt";
inline constexpr char kKeyFile[] = "tls.key";
// Behind the names of files that are about to take their places (weft certs).
inline constexpr char kNewSuffix[] = ".new";

struct TlsFolder {
  std::string path;
  std::string authorities;  // PEM
  std::string certificate;  // PEM
  std::string key;          // PEM
  CertificateFacts facts;   // of the certificate

  std::string File(const char* name) const { return path + "/" + name; }
};

// Reads and checks it as CheckTlsFolder does. Errors name the file.
absl::StatusOr<TlsFolder> LoadTlsFolder(const std::string& path, TlsRole role, int64_t now);

// Reads the files again. True: `folder` is what they are now. Errors: as above; `folder` stays, and
// so it does between the moments at which somebody replaces one file and the next.
absl::StatusOr<bool> RefreshTlsFolder(TlsFolder& folder, int64_t now);

// What a checked folder says, in PEM and nothing else.
struct TlsTexts {
  std::string authorities;
  std::string identity;  // the certificate, those behind it, and the key
};
absl::StatusOr<TlsTexts> CheckedTexts(const TlsFolder& folder);

// The key belongs to the certificate, the certificate comes from one of the authorities, is of that
// role and valid at `now` (seconds of Unix time). Errors: FAILED_PRECONDITION naming the file and
// what to do.
absl::Status CheckTlsFolder(const TlsFolder& folder, TlsRole role, int64_t now);

// Whether a certificate (PEM, with intermediates behind it) comes from `authorities`, whatever its
// dates. Errors: FAILED_PRECONDITION with the reason; INVALID_ARGUMENT.
absl::Status CheckIssuer(const std::string& certificate, const std::string& authorities);

}  // namespace weft
