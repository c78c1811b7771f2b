#include "common/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/test_certificates.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CertificateTest, Facts_AreWhatWasAskedFor) {
  const TestAuthority authority;
  const auto facts = ReadCertificateFacts(
      authority.Make(TlsRole::kWorker, {"gpu1", "10.0.0.2", "fe80::1"}).certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->name, "gpu1");
  EXPECT_EQ(facts->issuer, "test authority");
  EXPECT_EQ(facts->role, TlsRole::kWorker);
  EXPECT_THAT(facts->hosts, ElementsAre("gpu1", "10.0.0.2", "fe80::1"));
  EXPECT_EQ(facts->not_before, kTestNow - 86400);
  EXPECT_EQ(facts->not_after, kTestNow + 10 * 86400);
  EXPECT_EQ(facts->sha256.size(), 64);
  EXPECT_EQ(CertificateText(*facts), "'gpu1' (role worker; names gpu1, 10.0.0.2, fe80::1)");
}

TEST(CertificateTest, Hosts_MatchAsTlsWantsThem) {
  const TestAuthority authority;
  const std::string pem =
      authority.Make(TlsRole::kWorker, {"gpu1.lan", "*.workers.example", "10.0.0.2", "fe80::1"})
          .certificate;
  for (const char* host :
       {"gpu1.lan", "GPU1.LAN", "a.workers.example", "10.0.0.2", "fe80::1", "fe80:0:0:0:0:0:0:1"}) {
    EXPECT_EQ(CertificateNamesHost(pem, host).value_or(false), true) << host;
  }
  for (const char* host : {"gpu1", "lan", "a.b.workers.example", "workers.example", "10.0.0.20",
                           "10.0.0.1", "fe80::2", "", "*.workers.exampl"}) {
    EXPECT_EQ(CertificateNamesHost(pem, host).value_or(true), false) << host;
  }
}

TEST(CertificateTest, CommonName_IsNoHost) {
  const TestAuthority authority;
  auto made = MakeCertificate({.name = "gpu1",
                               .role = TlsRole::kWorker,
                               .hosts = {},
                               .not_before = kTestNow,
                               .not_after = kTestNow + 1},
                              authority.authority());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(CertificateNamesHost(made->certificate, "gpu1").value_or(true), false);
}

TEST(CertificateTest, Role_BelongsToOneUri) {
  EXPECT_EQ(RoleOfUris({}), TlsRole::kNone);
  EXPECT_EQ(RoleOfUris({"spiffe://a/b", "weft://worker"}), TlsRole::kWorker);
  EXPECT_EQ(RoleOfUris({"weft://coordinator"}), TlsRole::kCoordinator);
  EXPECT_EQ(RoleOfUris({"weft://coordinator", "weft://worker"}), TlsRole::kBoth);
  EXPECT_EQ(RoleOfUris({"weft://worker/", "weft://WORKER", "weft://work", "worker"}),
            TlsRole::kNone);
}

TEST(CertificateTest, Dates_AreInclusiveAndNamed) {
  CertificateFacts facts;
  facts.name = "gpu1";
  facts.not_before = kTestNow;
  facts.not_after = kTestNow + 60;
  EXPECT_THAT(CheckCertificateDates(facts, kTestNow), IsOk());
  EXPECT_THAT(CheckCertificateDates(facts, kTestNow + 60), IsOk());
  EXPECT_THAT(CheckCertificateDates(facts, kTestNow + 61),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("expired on 2027-01-15 08:01:00 UTC")));
  EXPECT_THAT(CheckCertificateDates(facts, kTestNow - 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("valid from 2027-01-15 08:00:00 UTC")));
}

TEST(CertificateTest, Nonsense_IsNoCertificate) {
  const TestAuthority authority;
  std::string cut = authority.Make(TlsRole::kWorker, {"gpu1"}).certificate;
  cut.erase(cut.size() / 2, 8);
  for (const std::string& pem :
       {std::string(), std::string("hello"), cut, authority.authority().key}) {
    EXPECT_THAT(ReadCertificateFacts(pem).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no certificate")));
  }
}

}  // namespace
}  // namespace weft
