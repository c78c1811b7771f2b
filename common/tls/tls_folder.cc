#include "common/tls/tls_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tls/openssl_objects.h"

namespace weft {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": longer than ", kMaxFileBytes));
  }
  text.resize(size);
  return text;
}

absl::Status WithFile(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(file, ": ", status.message()));
}

absl::Status CheckKey(const TlsFolder& folder) {
  auto key = ParsePrivateKey(folder.key);
  RETURN_IF_ERROR(WithFile(folder.File(kKeyFile), key.status()));
  ASSIGN_OR_RETURN(const OpenSslPointer<X509> certificate, ParseCertificate(folder.certificate));
  if (X509_check_private_key(certificate.get(), key->get()) == 1) return absl::OkStatus();
  (void)TakeOpenSslError();
  return absl::FailedPreconditionError(absl::StrCat(
      folder.File(kKeyFile), ": does not belong to the certificate in ", kCertificateFile));
}

}  // namespace

absl::Status CheckIssuer(const std::string& certificate, const std::string& authorities) {
  ASSIGN_OR_RETURN(const auto chain, ParseCertificates(certificate));
  ASSIGN_OR_RETURN(const auto trusted, ParseCertificates(authorities));
  const OpenSslPointer<X509_STORE_CTX> context(X509_STORE_CTX_new());
  const OpenSslPointer<X509_STORE> store(X509_STORE_new());
  if (context == nullptr || store == nullptr) {
    return absl::ResourceExhaustedError("no memory for OpenSSL");
  }
  X509* const leaf = sk_X509_value(chain.get(), 0);
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf, chain.get()) != 1) {
    return absl::InternalError(TakeOpenSslError());
  }
  X509_STORE_CTX_set0_trusted_stack(context.get(), trusted.get());
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  (void)TakeOpenSslError();
  return absl::FailedPreconditionError(X509_verify_cert_error_string(error));
}

absl::Status CheckTlsFolder(const TlsFolder& folder, TlsRole role, int64_t now) {
  RETURN_IF_ERROR(CheckKey(folder));
  const std::string file = folder.File(kCertificateFile);
  if (folder.facts.role != role) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, ": certificate ", CertificateText(folder.facts), " is not for a ",
                     AbslView(RoleText(role)), ": that needs the URI ", AbslView(RoleUri(role)),
                     " among its names (weft certs --help)"));
  }
  if (const absl::Status issuer = CheckIssuer(folder.certificate, folder.authorities);
      !issuer.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, ": certificate '", folder.facts.name, "' does not come from ",
                     folder.File(kAuthorityFile), ": ", issuer.message()));
  }
  return WithFile(file, CheckCertificateDates(folder.facts, now));
}

absl::StatusOr<TlsFolder> LoadTlsFolder(const std::string& path, TlsRole role, int64_t now) {
  TlsFolder folder;
  folder.path = path;
  ASSIGN_OR_RETURN(folder.authorities, ReadSmallFile(folder.File(kAuthorityFile)));
  ASSIGN_OR_RETURN(folder.certificate, ReadSmallFile(folder.File(kCertificateFile)));
  ASSIGN_OR_RETURN(folder.key, ReadSmallFile(folder.File(kKeyFile)));
  RETURN_IF_ERROR(
      WithFile(folder.File(kAuthorityFile), ParseCertificates(folder.authorities).status()));
  auto facts = ReadCertificateFacts(folder.certificate);
  RETURN_IF_ERROR(WithFile(folder.File(kCertificateFile), facts.status()));
  folder.facts = *std::move(facts);
  RETURN_IF_ERROR(CheckTlsFolder(folder, role, now));
  return folder;
}

}  // namespace weft
