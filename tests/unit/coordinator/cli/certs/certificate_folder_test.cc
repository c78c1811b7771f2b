#include "coordinator/cli/certs/certificate_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include <filesystem>

#include "common/tls/tls_folder.h"
#include "coordinator/cli/certs/certificate_maker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
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
    const std::string says = *missing == '\0' ? "certs coordinator" : "is there without";
    EXPECT_THAT(InitializeCerts({.folder = path}, kTestNow).status(),
                AnyOf(StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(says)),
                      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(says))));
    if (*missing != '\0') folder.Write(std::string("certs") + missing, kept);
  }
  EXPECT_EQ(FileText(path + "/ca.crt"), before);
}

TEST(CertificateFolderTest, InitThatWasKilled_IsFinishedByTheNextRun) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_OK(InitializeCerts({.folder = path}, kTestNow).status());
  const std::string certificate = FileText(path + "/ca.crt");
  for (const bool init : {true, false}) {
    // Between the two files' taking their places.
    std::filesystem::rename(path + "/ca.crt", path + "/ca.crt.new");
    std::filesystem::remove_all(path + "/coordinator");
    const auto run = init ? InitializeCerts : IssueCoordinator;
    ASSERT_OK(run({.folder = path}, kTestNow).status());
    EXPECT_EQ(FileText(path + "/ca.crt"), certificate);
    EXPECT_OK(LoadTlsFolder(path + "/coordinator", TlsRole::kCoordinator, kTestNow).status());
  }
}

TEST(CertificateFolderTest, KeyWithoutCertificate_AllRunsSayTheSame) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_OK(InitializeCerts({.folder = path}, kTestNow).status());
  ASSERT_OK(InitializeCerts({.folder = folder.File("other")}, kTestNow).status());
  std::filesystem::remove(path + "/ca.crt");
  // Another's is not taken for it.
  std::filesystem::copy(folder.File("other/ca.crt"), path + "/ca.crt.new");
  for (const auto& run : {InitializeCerts, IssueCoordinator}) {
    EXPECT_THAT(run({.folder = path}, kTestNow).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("delete " + path + "/ca.key and run 'weft certs init")));
  }
  EXPECT_FALSE(std::filesystem::exists(path + "/ca.crt"));
  std::filesystem::remove(path + "/ca.key");
  EXPECT_OK(InitializeCerts({.folder = path}, kTestNow).status());
}

// The key is shorter than the certificate, so there is room for it alone.
TEST(CertificateFolderTest, FullDisk_ChangesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little = {.rlim_cur = 350, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status status = InitializeCerts({.folder = path}, kTestNow).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("ca.crt.new"));
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EXPECT_OK(InitializeCerts({.folder = path}, kTestNow).status());
}

TEST(CertificateFolderTest, WhatIsNoFile_IsNotReplaced) {
  const TemporaryFolder folder;
  const std::string certs = folder.File("certs");
  ASSERT_THAT(InitializeCerts({.folder = certs}, kTestNow).status(), IsOk());
  const std::string pipe = folder.File("pipe");
  const std::string link = folder.File("link");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(folder.Write("elsewhere", "mine"), link);
  for (const std::string& path : {pipe, link, certs}) {
    const auto type = std::filesystem::symlink_status(path).type();
    EXPECT_THAT(WriteJoinToken(path),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
    EXPECT_EQ(std::filesystem::symlink_status(path).type(), type);
  }
  EXPECT_EQ(FileText(link), "mine");
  // Of one file among several: the others stay as they are.
  const std::string key = certs + "/coordinator/tls.key";
  const std::string certificate = FileText(certs + "/coordinator/tls.crt");
  std::filesystem::remove(key);
  std::filesystem::create_symlink(pipe, key);
  EXPECT_THAT(IssueCoordinator({.folder = certs}, kTestNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(key)));
  EXPECT_EQ(FileText(certs + "/coordinator/tls.crt"), certificate);
}

TEST(CertificateFolderTest, RenewalThatWasKilled_IsSaidAndMended) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_OK(InitializeCerts({.folder = path}, kTestNow).status());
  const std::string own = path + "/coordinator";
  const std::string old = FileText(own + "/tls.crt");
  ASSERT_OK(IssueCoordinator({.folder = path}, kTestNow).status());
  // Between the two files' taking their places.
  std::filesystem::rename(own + "/tls.crt", own + "/tls.crt.new");
  folder.Write("certs/coordinator/tls.crt", old);
  EXPECT_THAT(LoadTlsFolder(own, TlsRole::kCoordinator, kTestNow).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cut short"), HasSubstr("mv " + own + "/tls.crt.new"))));
  ASSERT_OK(IssueCoordinator({.folder = path}, kTestNow).status());
  EXPECT_OK(LoadTlsFolder(own, TlsRole::kCoordinator, kTestNow).status());
  EXPECT_FALSE(std::filesystem::exists(own + "/tls.crt.new"));
}

TEST(CertificateFolderTest, AuthoritysFilesThatAreNone_AreNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.File("certs");
  ASSERT_OK(InitializeCerts({.folder = path}, kTestNow).status());
  const auto issue = [&] {
    return IssueWorker({.folder = path, .name = "gpu1"}, kTestNow).status();
  };
  for (const char* name : {"ca.key", "ca.crt"}) {
    const std::string file = path + "/" + name;
    const std::string good = FileText(file);
    for (const std::string& text :
         {std::string(), std::string("no PEM"), std::string(2 << 20, 'x')}) {
      folder.Write(std::string("certs/") + name, text);
      EXPECT_THAT(issue(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(file)));
    }
    std::filesystem::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(issue(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(file)));
    std::filesystem::remove(file);
    std::filesystem::create_symlink("/dev/zero", file);
    EXPECT_THAT(issue(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(file)));
    std::filesystem::remove(file);
    folder.Write(std::string("certs/") + name, good);
    EXPECT_OK(issue());
  }
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
        "coordinator", "ca.crt", "ca.key", "ca.key.new", "*.workers", "fe80::1", "a\nb"}) {
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
