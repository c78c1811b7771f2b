// Owners of OpenSSL's objects, and its errors as text.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

struct OpenSslDeleter {
  void operator()(BIO* object) const { BIO_free_all(object); }
  void operator()(BIGNUM* object) const { BN_free(object); }
  void operator()(EVP_MD_CTX* object) const { EVP_MD_CTX_free(object); }
  void operator()(EVP_PKEY* object) const { EVP_PKEY_free(object); }
  void operator()(X509* object) const { X509_free(object); }
  void operator()(X509_EXTENSION* object) const { X509_EXTENSION_free(object); }
  void operator()(X509_STORE* object) const { X509_STORE_free(object); }
  void operator()(X509_STORE_CTX* object) const { X509_STORE_CTX_free(object); }
  void operator()(STACK_OF(X509) * object) const { sk_X509_pop_free(object, X509_free); }
  void operator()(GENERAL_NAMES* object) const { GENERAL_NAMES_free(object); }
  void operator()(SSL_CTX* object) const { SSL_CTX_free(object); }
  void operator()(SSL* object) const { SSL_free(object); }
};

template <typename Object>
using OpenSslPointer = std::unique_ptr<Object, OpenSslDeleter>;

// What this thread's last failed call of OpenSSL left, and forgets it.
std::string TakeOpenSslError();

// What was written into a BIO in memory.
std::string TextOf(BIO* memory);

// The first certificate of a PEM text. Errors: INVALID_ARGUMENT.
absl::StatusOr<OpenSslPointer<X509>> ParseCertificate(std::string_view pem);

// All of them, at most kMaxChainCertificates. Errors: INVALID_ARGUMENT, also for none, and for one
// that is cut off or damaged.
inline constexpr int kMaxChainCertificates = 32;
absl::StatusOr<OpenSslPointer<STACK_OF(X509)>> ParseCertificates(std::string_view pem);

// A private key without a password. Errors: INVALID_ARGUMENT.
absl::StatusOr<OpenSslPointer<EVP_PKEY>> ParsePrivateKey(std::string_view pem);

}  // namespace weft
