#include "tests/support/test_certificates.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/tls/tls_folder.h"

namespace weft {
namespace {

constexpr int64_t kDay = 86400;

}  // namespace

TestAuthority::TestAuthority(int64_t now) : now_(now) {
  auto made = MakeAuthority(
      {.name = "test authority", .not_before = now - 100 * kDay, .not_after = now + 100 * kDay});
  WEFT_CHECK(made.ok());
  authority_ = *std::move(made);
}

KeyAndCertificate TestAuthority::Make(TlsRole role, const std::vector<std::string>& hosts,
                                      int64_t shift) const {
  auto made = MakeCertificate({.name = hosts.empty() ? "nobody" : hosts[0],
                               .role = role,
                               .hosts = hosts,
                               .not_before = now_ - kDay + shift,
                               .not_after = now_ + 10 * kDay + shift},
                              authority_);
  WEFT_CHECK(made.ok());
  return *std::move(made);
}

std::string TestAuthority::Write(const std::string& name, const KeyAndCertificate& made) const {
  std::filesystem::create_directory(folder_.File(name));
  folder_.Write(name + "/" + kAuthorityFile, authority_.certificate);
  folder_.Write(name + "/" + kCertificateFile, made.certificate);
  folder_.Write(name + "/" + kKeyFile, made.key);
  return folder_.File(name);
}

}  // namespace weft
