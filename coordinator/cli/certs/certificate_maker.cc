#include "coordinator/cli/certs/certificate_maker.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/tls/openssl_objects.h"

namespace weft {
namespace {

constexpr size_t kMaxNameBytes = 64;  // of a common name: RFC 5280, upper bounds
constexpr size_t kMaxHostBytes = 253;
constexpr size_t kMaxLabelBytes = 63;
constexpr int kSerialBits = 127;  // positive, and at most 20 bytes

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("OpenSSL: ", what, ": ", TakeOpenSslError()));
}

bool IsAddress(const std::string& host) {
  std::array<uint8_t, sizeof(in6_addr)> bytes = {};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

bool IsLabel(absl::string_view label) {
  return !label.empty() && label.size() <= kMaxLabelBytes && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

absl::Status AddExtension(X509* certificate, X509V3_CTX* context, int kind,
                          const std::string& value) {
  const OpenSslPointer<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, context, kind, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return Failed(absl::StrCat("extension ", OBJ_nid2sn(kind)));
  }
  return absl::OkStatus();
}

// In the form of OpenSSL's configuration; hosts were checked, so nothing in them ends a name.
std::string AlternativeNames(const CertificateRequest& request) {
  std::string text = absl::StrCat("URI:", AbslView(RoleUri(request.role)));
  for (const std::string& host : request.hosts) {
    absl::StrAppend(&text, IsAddress(host) ? ",IP:" : ",DNS:", host);
  }
  return text;
}

absl::Status AddExtensions(const CertificateRequest& request, X509* certificate, X509* issuer) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const auto add = [&](int kind, const std::string& value) {
    return AddExtension(certificate, &context, kind, value);
  };
  RETURN_IF_ERROR(add(NID_subject_key_identifier, "hash"));
  if (request.role == TlsRole::kNone) {
    RETURN_IF_ERROR(add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
    return add(NID_key_usage, "critical,keyCertSign,cRLSign");
  }
  RETURN_IF_ERROR(add(NID_authority_key_identifier, "keyid:always"));
  RETURN_IF_ERROR(add(NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(add(NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(add(NID_ext_key_usage, "serverAuth,clientAuth"));
  return add(NID_subject_alt_name, AlternativeNames(request));
}

absl::Status SetSerialNumber(X509* certificate) {
  const OpenSslPointer<BIGNUM> number(BN_new());
  if (number == nullptr ||
      BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return Failed("serial number");
  }
  return absl::OkStatus();
}

absl::Status SetSubject(const CertificateRequest& request, X509* certificate, EVP_PKEY* key) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(request.name.data());
  const auto size = static_cast<int>(request.name.size());
  if (X509_set_version(certificate, X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate, key) != 1 ||
      X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, bytes, size, -1, 0) != 1) {
    return Failed("subject");
  }
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), request.not_before) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), request.not_after) == nullptr) {
    return Failed("dates");
  }
  return absl::OkStatus();
}

template <typename Write>
absl::StatusOr<std::string> PemOf(Write write) {
  const OpenSslPointer<BIO> out(BIO_new(BIO_s_mem()));
  if (out == nullptr || write(out.get()) != 1) return Failed("PEM");
  return TextOf(out.get());
}

absl::Status CheckRequest(const CertificateRequest& request) {
  if (request.name.empty() || request.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a certificate's name has 1 to ", kMaxNameBytes, " bytes"));
  }
  if (request.not_after <= request.not_before) {
    return absl::InvalidArgumentError("a certificate that ends before it begins");
  }
  for (const std::string& host : request.hosts) RETURN_IF_ERROR(CheckHostName(host));
  return absl::OkStatus();
}

// Without an issuer it signs itself.
absl::StatusOr<KeyAndCertificate> Make(const CertificateRequest& request, X509* issuer,
                                       EVP_PKEY* issuer_key) {
  RETURN_IF_ERROR(CheckRequest(request));
  const OpenSslPointer<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const OpenSslPointer<X509> certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return Failed("key");
  RETURN_IF_ERROR(SetSerialNumber(certificate.get()));
  RETURN_IF_ERROR(SetSubject(request, certificate.get(), key.get()));
  X509* const signer = issuer == nullptr ? certificate.get() : issuer;
  if (X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer)) != 1) {
    return Failed("issuer");
  }
  RETURN_IF_ERROR(AddExtensions(request, certificate.get(), signer));
  EVP_PKEY* const signing_key = issuer_key == nullptr ? key.get() : issuer_key;
  if (X509_sign(certificate.get(), signing_key, EVP_sha256()) == 0) return Failed("signature");
  KeyAndCertificate made;
  ASSIGN_OR_RETURN(made.key, PemOf([&](BIO* out) {
                     return PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0,
                                                          nullptr, nullptr);
                   }));
  ASSIGN_OR_RETURN(made.certificate,
                   PemOf([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); }));
  return made;
}

}  // namespace

absl::Status CheckHostName(std::string_view host) {
  const std::string text(host);
  if (IsAddress(text)) return absl::OkStatus();
  absl::string_view labels = text;
  if (labels.substr(0, 2) == "*.") labels.remove_prefix(2);
  bool good = !labels.empty() && host.size() <= kMaxHostBytes;
  for (const absl::string_view label : absl::StrSplit(labels, '.')) good = good && IsLabel(label);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", EscapedText(host, kMaxHostBytes), "' is no host name and no IP address (no port here)"));
}

absl::StatusOr<KeyAndCertificate> MakeAuthority(const CertificateRequest& request) {
  if (request.role != TlsRole::kNone || !request.hosts.empty()) {
    return absl::InvalidArgumentError("an authority has no role and no hosts");
  }
  return Make(request, nullptr, nullptr);
}

absl::StatusOr<KeyAndCertificate> MakeCertificate(const CertificateRequest& request,
                                                  const KeyAndCertificate& issuer) {
  if (request.role == TlsRole::kNone) {
    return absl::InvalidArgumentError("a certificate without a role");
  }
  ASSIGN_OR_RETURN(const OpenSslPointer<X509> authority, ParseCertificate(issuer.certificate));
  ASSIGN_OR_RETURN(const OpenSslPointer<EVP_PKEY> key, ParsePrivateKey(issuer.key));
  if (X509_check_private_key(authority.get(), key.get()) != 1) {
    (void)TakeOpenSslError();
    return absl::InvalidArgumentError("the authority's key does not belong to its certificate");
  }
  if (X509_check_ca(authority.get()) != 1) {
    return absl::InvalidArgumentError("that certificate is no authority's");
  }
  return Make(request, authority.get(), key.get());
}

}  // namespace weft
