#include "coordinator/cli/certs/certificate_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/tls/tls_folder.h"
#include "coordinator/cli/certs/certificate_maker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
  struct stat facts = {};
  EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

TEST(CertificateFolderTest, Init_MakesWhatTheCoordinatorLoads) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  const auto issued = InitializeCerts({.folder = path}, kTestNow);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(issued->folder, path + "/coordinator");
  const auto loaded = LoadTlsFolder(issued->folder, TlsRole::kCoordinator, kTestNow);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->facts.not_after, kTestNow + 365 * 86400);
}

TEST(CertificateFolderTest, PrivateKeys_AreTheOwnersAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  const mode_t before = umask(0);
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  ASSERT_THAT(IssueWorker({.folder = path, .name = "gpu1"}, kTestNow).status(), IsOk());
  umask(before);
  for (const char* name : {"", "/coordinator", "/gpu1"}) EXPECT_EQ(ModeOf(path + name), 0700);
  for (const char* key : {"/ca.key", "/coordinator/tls.key", "/gpu1/tls.key"}) {
    EXPECT_EQ(ModeOf(path + key), 0600) << key;
  }
}

TEST(CertificateFolderTest, Worker_HasItsNameAndHosts) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  const auto issued = IssueWorker(
      {.folder = path, .name = "gpu1", .hosts = {"10.0.0.2", "gpu1", "fe80::1"}, .days = 7},
      kTestNow);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(issued->facts.hosts, ElementsAre("gpu1", "10.0.0.2", "fe80::1"));
  EXPECT_EQ(issued->facts.not_after, kTestNow + 7 * 86400);
  EXPECT_THAT(LoadTlsFolder(issued->folder, TlsRole::kWorker, kTestNow).status(), IsOk());
}

TEST(CertificateFolderTest, Authority_IsNeverReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  const std::string before = FileText(path + "/ca.crt");
  for (const char* missing : {"", "/ca.crt", "/ca.key"}) {
    const std::string kept = *missing == '\0' ? "" : FileText(path + missing);
    if (*missing != '\0') std::filesystem::remove(path + missing);
    EXPECT_THAT(InitializeCerts({.folder = path}, kTestNow).status(),
                StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("certs coordinator")));
    if (*missing != '\0') folder.Write(std::string("certs") + missing, kept);
  }
  EXPECT_EQ(FileText(path + "/ca.crt"), before);
}

TEST(CertificateFolderTest, Renewal_KeepsTheAuthorityAndChangesTheKey) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  const std::string key = FileText(path + "/coordinator/tls.key");
  ASSERT_THAT(IssueCoordinator({.folder = path}, kTestNow + 86400).status(), IsOk());
  EXPECT_NE(FileText(path + "/coordinator/tls.key"), key);
  EXPECT_THAT(
      LoadTlsFolder(path + "/coordinator", TlsRole::kCoordinator, kTestNow + 86400).status(),
      IsOk());
}

TEST(CertificateFolderTest, Certificate_DoesNotOutliveItsAuthority) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  const int64_t late = kTestNow + int64_t{kAuthorityDays - 10} * 86400;
  const auto issued = IssueWorker({.folder = path, .name = "gpu1"}, late);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(issued->facts.not_after, kTestNow + int64_t{kAuthorityDays} * 86400);
  EXPECT_THAT(IssueWorker({.folder = path, .name = "gpu1"}, late + 11 * 86400).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has expired")));
}

TEST(CertificateFolderTest, NamesThatAreNone_AreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = path}, kTestNow).status(), IsOk());
  for (const char* name :
       {"", "..", ".", "../x", "a/b", "/etc", "-x", "a b", "a,URI:weft://coordinator",
        "coordinator", "ca.crt", "ca.key", "*.workers", "fe80::1", "a\nb"}) {
    EXPECT_THAT(IssueWorker({.folder = path, .name = name}, kTestNow).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  for (const char* host : {"", "a,b", "10.0.0.2:7000", "a_b!", "a..b", "**.x", "x.*"}) {
    EXPECT_THAT(IssueWorker({.folder = path, .name = "gpu1", .hosts = {host}}, kTestNow).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << host;
  }
  for (const int days : {0, -1, 40000}) {
    EXPECT_THAT(IssueWorker({.folder = path, .name = "gpu1", .days = days}, kTestNow).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--days")));
  }
  EXPECT_FALSE(std::filesystem::exists(path + "/gpu1"));
}

TEST(CertificateFolderTest, WithoutAuthority_SaysWhatToDo) {
  const TemporaryFolder folder;
  EXPECT_THAT(IssueWorker({.folder = folder.path(), .name = "gpu1"}, kTestNow).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("weft certs init")));
}

}  // namespace
}  // namespace weft
