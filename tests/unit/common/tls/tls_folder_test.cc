#include "common/tls/tls_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/test_certificates.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Load(const std::string& path, TlsRole role = TlsRole::kWorker) {
  return LoadTlsFolder(path, role, kTestNow).status();
}

bool Refresh(TlsFolder& folder) {
  const absl::StatusOr<bool> news = RefreshTlsFolder(folder, kTestNow);
  EXPECT_OK(news.status());
  return news.ok() && *news;
}

TEST(TlsFolderTest, WhatBelongsTogether_Loads) {
  const TestAuthority authority;
  const auto folder =
      LoadTlsFolder(authority.Write("gpu1", authority.Make(TlsRole::kWorker, {"gpu1"})),
                    TlsRole::kWorker, kTestNow);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->facts.name, "gpu1");
}

TEST(TlsFolderTest, MissingFile_IsNamed) {
  const TestAuthority authority;
  for (const char* file : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    const std::string path =
        authority.Write(std::string("without-") + file, authority.Make(TlsRole::kWorker, {"gpu1"}));
    std::filesystem::remove(path + "/" + file);
    EXPECT_THAT(Load(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + "/" + file)));
  }
}

TEST(TlsFolderTest, FileThatIsNone_IsNamed) {
  const TestAuthority authority;
  for (const char* file : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    const std::string path =
        authority.Write(std::string("bad-") + file, authority.Make(TlsRole::kWorker, {"gpu1"}));
    std::ofstream(path + "/" + file) << "no PEM";
    EXPECT_THAT(Load(path),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path + "/" + file)));
  }
}

TEST(TlsFolderTest, OtherRole_IsRefused) {
  const TestAuthority authority;
  const std::string path = authority.Write("gpu1", authority.Make(TlsRole::kWorker, {"gpu1"}));
  EXPECT_THAT(Load(path, TlsRole::kCoordinator),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'gpu1' (role worker"), HasSubstr("weft://coordinator"))));
}

TEST(TlsFolderTest, KeyOfAnother_IsRefused) {
  const TestAuthority authority;
  KeyAndCertificate mixed = authority.Make(TlsRole::kWorker, {"gpu1"});
  mixed.key = authority.Make(TlsRole::kWorker, {"gpu1"}).key;
  EXPECT_THAT(Load(authority.Write("mixed", mixed)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("does not belong")));
}

// A private half that is not the public one's, which stands in the file too.
TEST(TlsFolderTest, DamagedKey_IsRefused) {
  const TestAuthority authority;
  KeyAndCertificate made = authority.Make(TlsRole::kWorker, {"gpu1"});
  // In the numbers of PKCS #8, in the middle of those of the private half.
  const size_t at = made.key.find('\n') + 1 + 52;
  made.key.replace(at, 4, made.key.compare(at, 4, "AAAA") == 0 ? "BBBB" : "AAAA");
  EXPECT_THAT(Load(authority.Write("damaged", made)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("tls.key"), HasSubstr("does not belong"))));
}

TEST(TlsFolderTest, DamagedCertificateBehindAGoodOne_IsRefused) {
  const TestAuthority authority;
  const KeyAndCertificate made = authority.Make(TlsRole::kWorker, {"gpu1"});
  for (const char* file : {kAuthorityFile, kCertificateFile}) {
    const std::string path = authority.Write(std::string("cut-") + file, made);
    const std::string whole = FileText(path + "/" + file);
    std::ofstream(path + "/" + file, std::ios::app) << whole.substr(0, whole.size() / 2);
    EXPECT_THAT(Load(path),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(path + "/" + file), HasSubstr("certificate 2"))));
    std::ofstream(path + "/" + file) << whole << "words behind it\n";
    EXPECT_OK(Load(path));
  }
}

TEST(TlsFolderTest, PipesAndDevices_AreNamedAtOnce) {
  const TestAuthority authority;
  for (const char* file : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    const std::string path =
        authority.Write(std::string("odd-") + file, authority.Make(TlsRole::kWorker, {"gpu1"}));
    std::filesystem::remove(path + "/" + file);
    ASSERT_EQ(mkfifo((path + "/" + file).c_str(), 0600), 0);
    EXPECT_THAT(Load(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path + "/" + file)));
    std::filesystem::remove(path + "/" + file);
    std::filesystem::create_symlink("/dev/zero", path + "/" + file);
    EXPECT_THAT(Load(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path + "/" + file)));
  }
}

TEST(TlsFolderTest, Refresh_TakesOnlyWhatBelongsTogether) {
  const TestAuthority authority;
  const std::string path = authority.Write("gpu1", authority.Make(TlsRole::kWorker, {"gpu1"}));
  ASSERT_OK_AND_ASSIGN(TlsFolder folder, LoadTlsFolder(path, TlsRole::kWorker, kTestNow));
  EXPECT_FALSE(Refresh(folder));
  const std::string old = folder.certificate;
  const KeyAndCertificate made = authority.Make(TlsRole::kWorker, {"gpu1", "gpu1.lan"});
  // As people copy: emptied, half written, one file before the other.
  for (const std::string& text : {std::string(), made.key.substr(0, 100), made.key}) {
    std::ofstream(path + "/" + kKeyFile) << text;
    EXPECT_THAT(RefreshTlsFolder(folder, kTestNow),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
    EXPECT_EQ(folder.certificate, old);
  }
  std::ofstream(path + "/" + kCertificateFile) << made.certificate;
  EXPECT_TRUE(Refresh(folder));
  EXPECT_EQ(folder.certificate, made.certificate);
  EXPECT_EQ(folder.facts.hosts.size(), 2U);
  EXPECT_FALSE(Refresh(folder));
}

TEST(TlsFolderTest, Texts_HaveNothingElse) {
  const TestAuthority authority;
  const KeyAndCertificate made = authority.Make(TlsRole::kWorker, {"gpu1"});
  const std::string& issuer = authority.authority().certificate;
  // Some keep everything in one file.
  const std::string path =
      authority.Write("gpu1", {.key = "words\n" + issuer + made.key,
                               .certificate = "words\n" + made.certificate + issuer + "words\n"});
  ASSERT_OK_AND_ASSIGN(const TlsFolder folder, LoadTlsFolder(path, TlsRole::kWorker, kTestNow));
  ASSERT_OK_AND_ASSIGN(const TlsTexts texts, CheckedTexts(folder));
  EXPECT_EQ(texts.identity, made.certificate + issuer + made.key);
  EXPECT_EQ(texts.authorities, issuer);
}

TEST(TlsFolderTest, OtherAuthority_IsRefused) {
  const TestAuthority authority;
  const TestAuthority other;
  EXPECT_THAT(Load(authority.Write("foreign", other.Make(TlsRole::kWorker, {"gpu1"}))),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("does not come from"), HasSubstr("ca.crt"))));
}

TEST(TlsFolderTest, DatesCount) {
  const TestAuthority authority;
  constexpr int64_t kMonth = 30 * 86400;
  EXPECT_THAT(Load(authority.Write("old", authority.Make(TlsRole::kWorker, {"gpu1"}, -kMonth))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has expired")));
  EXPECT_THAT(Load(authority.Write("new", authority.Make(TlsRole::kWorker, {"gpu1"}, kMonth))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is the clock right?")));
}

// A leaf that signs is no authority.
TEST(TlsFolderTest, CertificateSignedByALeaf_IsRefused) {
  const TestAuthority authority;
  const KeyAndCertificate leaf = authority.Make(TlsRole::kWorker, {"gpu1"});
  EXPECT_THAT(MakeCertificate({.name = "gpu2",
                               .role = TlsRole::kCoordinator,
                               .hosts = {},
                               .not_before = kTestNow,
                               .not_after = kTestNow + 1},
                              leaf)
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no authority")));
}

}  // namespace
}  // namespace weft
