// Certificates for tests: an authority and what it signs, in folders as --tls takes them.
#pragma once

#include <string>
#include <vector>

#include "common/tls/certificate.h"
#include "coordinator/cli/certs/certificate_maker.h"
#include "tests/support/temporary_folder.h"

namespace weft {

inline constexpr int64_t kTestNow = 1'800'000'000;  // 2027-01-15

class TestAuthority {
 public:
  // `now`: its certificates are valid from a day before to ten days after.
  explicit TestAuthority(int64_t now = kTestNow);

  const KeyAndCertificate& authority() const { return authority_; }
  // Moved in time by so many seconds.
  KeyAndCertificate Make(TlsRole role, const std::vector<std::string>& hosts,
                         int64_t shift = 0) const;
  // Writes ca.crt, tls.crt and tls.key into a new folder of that name; returns its path.
  std::string Write(const std::string& name, const KeyAndCertificate& made) const;

 private:
  const int64_t now_;
  TemporaryFolder folder_;
  KeyAndCertificate authority_;
};

}  // namespace weft
