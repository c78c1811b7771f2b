#include "common/tls/certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/tls/openssl_objects.h"

namespace weft {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxNames = 64;  // that are kept

std::string_view BytesOf(const ASN1_STRING* text) {
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// The common name, else the whole of it.
std::string NameText(const X509_NAME* name) {
  const int place = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (place >= 0) {
    return EscapedText(BytesOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, place))),
                       kMaxNameBytes);
  }
  const OpenSslPointer<BIO> out(BIO_new(BIO_s_mem()));
  if (out == nullptr || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE) < 0) return "?";
  return EscapedText(TextOf(out.get()), kMaxNameBytes);
}

std::string AddressText(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  if (bytes.size() != 4 && bytes.size() != 16) return "?";
  if (inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr) return "?";
  return text.data();
}

void ReadNames(const X509* certificate, CertificateFacts& facts) {
  const OpenSslPointer<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      uris.emplace_back(BytesOf(name->d.uniformResourceIdentifier));
    } else if (facts.hosts.size() >= kMaxNames) {
      continue;
    } else if (name->type == GEN_DNS) {
      facts.hosts.push_back(EscapedText(BytesOf(name->d.dNSName), kMaxNameBytes));
    } else if (name->type == GEN_IPADD) {
      facts.hosts.push_back(AddressText(BytesOf(name->d.iPAddress)));
    }
  }
  facts.role = RoleOfUris(uris);
}

absl::StatusOr<int64_t> UnixTimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::InvalidArgumentError("a certificate with a date that is none");
  }
  return static_cast<int64_t>(timegm(&parts));
}

}  // namespace

std::string_view RoleText(TlsRole role) {
  switch (role) {
    case TlsRole::kCoordinator:
      return "coordinator";
    case TlsRole::kWorker:
      return "worker";
    case TlsRole::kBoth:
      return "both";
    case TlsRole::kNone:
      break;
  }
  return "none";
}

std::string_view RoleUri(TlsRole role) {
  switch (role) {
    case TlsRole::kCoordinator:
      return "weft://coordinator";
    case TlsRole::kWorker:
      return "weft://worker";
    case TlsRole::kBoth:
    case TlsRole::kNone:
      break;
  }
  return "";
}

TlsRole RoleOfUris(const std::vector<std::string>& uris) {
  const auto has = [&](TlsRole role) {
    return std::find(uris.begin(), uris.end(), RoleUri(role)) != uris.end();
  };
  const bool coordinator = has(TlsRole::kCoordinator);
  const bool worker = has(TlsRole::kWorker);
  if (coordinator && worker) return TlsRole::kBoth;
  if (coordinator) return TlsRole::kCoordinator;
  return worker ? TlsRole::kWorker : TlsRole::kNone;
}

absl::StatusOr<CertificateFacts> ReadCertificateFacts(std::string_view pem) {
  ASSIGN_OR_RETURN(const OpenSslPointer<X509> certificate, ParseCertificate(pem));
  CertificateFacts facts;
  facts.name = NameText(X509_get_subject_name(certificate.get()));
  facts.issuer = NameText(X509_get_issuer_name(certificate.get()));
  ReadNames(certificate.get(), facts);
  ASSIGN_OR_RETURN(facts.not_before, UnixTimeOf(X509_get0_notBefore(certificate.get())));
  ASSIGN_OR_RETURN(facts.not_after, UnixTimeOf(X509_get0_notAfter(certificate.get())));
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  if (X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1) {
    return absl::InternalError(absl::StrCat("a certificate's digest: ", TakeOpenSslError()));
  }
  facts.sha256 = absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
  return facts;
}

absl::StatusOr<bool> CertificateNamesHost(std::string_view pem, const std::string& host) {
  ASSIGN_OR_RETURN(const OpenSslPointer<X509> certificate, ParseCertificate(pem));
  std::array<uint8_t, sizeof(in6_addr)> address = {};
  const bool is_address = inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
  const int matches = is_address ? X509_check_ip_asc(certificate.get(), host.c_str(), 0)
                                 : X509_check_host(certificate.get(), host.data(), host.size(),
                                                   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr);
  return matches == 1;
}

std::string CertificateText(const CertificateFacts& facts) {
  return absl::StrCat("'", facts.name, "' (role ", AbslView(RoleText(facts.role)),
                      facts.hosts.empty() ? "" : "; names ", absl::StrJoin(facts.hosts, ", "), ")");
}

absl::Status CheckPeerCertificate(std::string_view pem, TlsRole role, const std::string& host) {
  ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificateFacts(pem));
  if (facts.role != role) {
    return absl::UnauthenticatedError(absl::StrCat("its certificate ", CertificateText(facts),
                                                   " is not a ", AbslView(RoleText(role)), "'s"));
  }
  ASSIGN_OR_RETURN(const bool names_host, CertificateNamesHost(pem, host));
  if (names_host) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("its certificate ", CertificateText(facts), " does not name ", host,
                   ": connect to one of its names, or make it with 'weft certs ",
                   AbslView(RoleText(role)), " ... --host ", host, "'"));
}

absl::Status CheckCertificateDates(const CertificateFacts& facts, int64_t now) {
  if (now > facts.not_after) {
    return absl::FailedPreconditionError(absl::StrCat("certificate '", facts.name,
                                                      "' has expired on ", UtcText(facts.not_after),
                                                      "; it is ", UtcText(now), " here"));
  }
  if (now < facts.not_before) {
    return absl::FailedPreconditionError(
        absl::StrCat("certificate '", facts.name, "' is valid from ", UtcText(facts.not_before),
                     " only; it is ", UtcText(now), " here: is the clock right?"));
  }
  return absl::OkStatus();
}

std::string UtcText(int64_t unix_seconds) {
  const auto seconds = static_cast<time_t>(unix_seconds);
  std::tm parts = {};
  std::array<char, 64> text = {};
  if (gmtime_r(&seconds, &parts) == nullptr) return absl::StrCat(unix_seconds);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

}  // namespace weft
