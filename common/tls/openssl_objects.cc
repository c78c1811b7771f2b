#include "common/tls/openssl_objects.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <climits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// No password is ever asked for on a terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<OpenSslPointer<BIO>> MemoryOf(std::string_view text) {
  if (text.size() > INT_MAX) return absl::InvalidArgumentError("too long");
  OpenSslPointer<BIO> bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bytes == nullptr) return absl::ResourceExhaustedError("no memory for OpenSSL");
  return bytes;
}

}  // namespace

std::string TakeOpenSslError() {
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (const char* const reason = ERR_reason_error_string(code); reason != nullptr) return reason;
  std::array<char, 256> text = {};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);  // NOLINT(google-runtime-int)
  return {data, static_cast<size_t>(std::max(size, 0L))};
}

absl::StatusOr<OpenSslPointer<X509>> ParseCertificate(std::string_view pem) {
  ASSIGN_OR_RETURN(const OpenSslPointer<BIO> bytes, MemoryOf(pem));
  OpenSslPointer<X509> certificate(PEM_read_bio_X509(bytes.get(), nullptr, NoPassword, nullptr));
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(absl::StrCat("no certificate in PEM: ", TakeOpenSslError()));
}

absl::StatusOr<OpenSslPointer<STACK_OF(X509)>> ParseCertificates(std::string_view pem) {
  ASSIGN_OR_RETURN(const OpenSslPointer<BIO> bytes, MemoryOf(pem));
  OpenSslPointer<STACK_OF(X509)> all(sk_X509_new_null());
  while (X509* next = PEM_read_bio_X509(bytes.get(), nullptr, NoPassword, nullptr)) {
    OpenSslPointer<X509> owned(next);
    if (sk_X509_num(all.get()) >= kMaxChainCertificates) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxChainCertificates, " certificates"));
    }
    if (sk_X509_push(all.get(), owned.get()) == 0) {
      return absl::ResourceExhaustedError("no memory for OpenSSL");
    }
    (void)owned.release();  // the stack has it
  }
  // The reading ends with an error, also at the end.
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const std::string why = TakeOpenSslError();
  const int count = sk_X509_num(all.get());
  if (count > 0 && reason == PEM_R_NO_START_LINE) return all;
  return absl::InvalidArgumentError(
      count == 0 ? absl::StrCat("no certificate in PEM: ", why)
                 : absl::StrCat("certificate ", count + 1, " in it is damaged: ", why));
}

absl::StatusOr<OpenSslPointer<EVP_PKEY>> ParsePrivateKey(std::string_view pem) {
  ASSIGN_OR_RETURN(const OpenSslPointer<BIO> bytes, MemoryOf(pem));
  OpenSslPointer<EVP_PKEY> key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, NoPassword, nullptr));
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      absl::StrCat("no private key in PEM (without a password): ", TakeOpenSslError()));
}

}  // namespace weft
