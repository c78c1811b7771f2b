#include "common/tls/tls_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
