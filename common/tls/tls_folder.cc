#include "common/tls/tls_folder.h"

#include <openssl/pem.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"
#include "common/tls/openssl_objects.h"

namespace weft {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

absl::Status WithFile(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(file, ": ", status.message()));
}

// Whether that certificate's owner has the key. Comparing the public halves alone, as
// X509_check_private_key does, misses a private half that is damaged.
bool KeyFits(EVP_PKEY* key, X509* certificate) {
  if (X509_check_private_key(certificate, key) != 1) return false;
  constexpr std::array<unsigned char, 4> kText = {'w', 'e', 'f', 't'};
  const int kind = EVP_PKEY_get_base_id(key);
  const bool hashes_itself = kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448;
  const EVP_MD* const digest = hashes_itself ? nullptr : EVP_sha256();
  const OpenSslPointer<EVP_MD_CTX> signing(EVP_MD_CTX_new());
  const OpenSslPointer<EVP_MD_CTX> checking(EVP_MD_CTX_new());
  if (signing == nullptr || checking == nullptr) return false;
  size_t size = 0;
  if (EVP_DigestSignInit(signing.get(), nullptr, digest, nullptr, key) != 1 ||
      EVP_DigestSign(signing.get(), nullptr, &size, kText.data(), kText.size()) != 1) {
    return false;
  }
  std::string signature(size, '\0');
  auto* const bytes = reinterpret_cast<unsigned char*>(signature.data());
  return EVP_DigestSign(signing.get(), bytes, &size, kText.data(), kText.size()) == 1 &&
         EVP_DigestVerifyInit(checking.get(), nullptr, digest, nullptr,
                              X509_get0_pubkey(certificate)) == 1 &&
         EVP_DigestVerify(checking.get(), bytes, size, kText.data(), kText.size()) == 1;
}

// What helps if the key came from a run of 'weft certs' that was killed before the certificate took
// its place.
std::string HalfRenewal(const TlsFolder& folder) {
  const std::string left = folder.File(kCertificateFile) + kNewSuffix;
  if (!ReadSmallFile(left, kMaxFileBytes).ok()) return "";
  return absl::StrCat("; a renewal was cut short: run 'weft certs' for it again, or mv ", left, " ",
                      folder.File(kCertificateFile));
}

absl::Status CheckKey(const TlsFolder& folder) {
  auto key = ParsePrivateKey(folder.key);
  RETURN_IF_ERROR(WithFile(folder.File(kKeyFile), key.status()));
  ASSIGN_OR_RETURN(const OpenSslPointer<X509> certificate, ParseCertificate(folder.certificate));
  if (!KeyFits(key->get(), certificate.get())) {
    (void)TakeOpenSslError();
    return absl::FailedPreconditionError(absl::StrCat(folder.File(kKeyFile),
                                                      ": does not belong to the certificate in ",
                                                      kCertificateFile, HalfRenewal(folder)));
  }
  // What the library that will use both says: keys may be too short for it.
  const OpenSslPointer<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for OpenSSL");
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) == 1 &&
      SSL_CTX_use_PrivateKey(context.get(), key->get()) == 1) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      folder.File(kCertificateFile), ": TLS cannot use its key: ", TakeOpenSslError()));
}

// As files of that path name them, before anything was checked.
absl::StatusOr<TlsFolder> ReadTlsFiles(const std::string& path) {
  TlsFolder folder;
  folder.path = path;
  const auto read = [&](const char* name) {
    return ReadSmallFile(folder.File(name), kMaxFileBytes);
  };
  ASSIGN_OR_RETURN(folder.authorities, read(kAuthorityFile));
  ASSIGN_OR_RETURN(folder.certificate, read(kCertificateFile));
  ASSIGN_OR_RETURN(folder.key, read(kKeyFile));
  return folder;
}

absl::Status FinishTlsFolder(TlsFolder& folder, TlsRole role, int64_t now) {
  RETURN_IF_ERROR(
      WithFile(folder.File(kAuthorityFile), ParseCertificates(folder.authorities).status()));
  const std::string file = folder.File(kCertificateFile);
  RETURN_IF_ERROR(WithFile(file, ParseCertificates(folder.certificate).status()));
  auto facts = ReadCertificateFacts(folder.certificate);
  RETURN_IF_ERROR(WithFile(file, facts.status()));
  folder.facts = *std::move(facts);
  return CheckTlsFolder(folder, role, now);
}

absl::Status WriteCertificates(const std::string& pem, BIO* out) {
  ASSIGN_OR_RETURN(const auto all, ParseCertificates(pem));
  for (int i = 0; i < sk_X509_num(all.get()); ++i) {
    if (PEM_write_bio_X509(out, sk_X509_value(all.get(), i)) != 1) {
      return absl::InternalError(TakeOpenSslError());
    }
  }
  return absl::OkStatus();
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
                     " among its names, and no other role's (weft certs --help)"));
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
  ASSIGN_OR_RETURN(TlsFolder folder, ReadTlsFiles(path));
  RETURN_IF_ERROR(FinishTlsFolder(folder, role, now));
  return folder;
}

absl::StatusOr<bool> RefreshTlsFolder(TlsFolder& folder, int64_t now) {
  ASSIGN_OR_RETURN(TlsFolder read, ReadTlsFiles(folder.path));
  if (read.authorities == folder.authorities && read.certificate == folder.certificate &&
      read.key == folder.key) {
    return false;
  }
  RETURN_IF_ERROR(FinishTlsFolder(read, folder.facts.role, now));
  folder = std::move(read);
  return true;
}

absl::StatusOr<TlsTexts> CheckedTexts(const TlsFolder& folder) {
  const OpenSslPointer<BIO> authorities(BIO_new(BIO_s_mem()));
  const OpenSslPointer<BIO> identity(BIO_new(BIO_s_mem()));
  if (authorities == nullptr || identity == nullptr) {
    return absl::ResourceExhaustedError("no memory for OpenSSL");
  }
  RETURN_IF_ERROR(WriteCertificates(folder.authorities, authorities.get()));
  RETURN_IF_ERROR(WriteCertificates(folder.certificate, identity.get()));
  ASSIGN_OR_RETURN(const OpenSslPointer<EVP_PKEY> key, ParsePrivateKey(folder.key));
  if (PEM_write_bio_PKCS8PrivateKey(identity.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1) {
    return absl::InternalError(TakeOpenSslError());
  }
  return TlsTexts{.authorities = TextOf(authorities.get()), .identity = TextOf(identity.get())};
}

}  // namespace weft
