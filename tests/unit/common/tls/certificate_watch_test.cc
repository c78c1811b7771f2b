#include "common/tls/certificate_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/hand_clock.h"
#include "tests/support/test_certificates.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kDay = 86400;

class CertificateWatchTest : public testing::Test {
 protected:
  CertificateWatchTest() {
    path_ = authority_.Write("w0", authority_.Make(TlsRole::kWorker, {"gpu1"}));
    const auto folder = LoadTlsFolder(path_, TlsRole::kWorker, kTestNow);
    EXPECT_TRUE(folder.ok()) << folder.status();
    watch_ = std::make_unique<CertificateWatch>(*folder, clock_, logger_, [this] { return now_; });
  }

  // What is said at that time.
  std::string SaidAt(int64_t now) {
    now_ = now;
    clock_.Move(std::chrono::seconds(60));
    testing::internal::CaptureStderr();
    watch_->Look();
    return testing::internal::GetCapturedStderr();
  }

  const TestAuthority authority_;
  HandClock clock_;
  Logger logger_{"watch", LogLevel::kInfo};
  int64_t now_ = kTestNow;
  std::string path_;
  std::unique_ptr<CertificateWatch> watch_;
};

// The certificate of the tests ends after ten days.
TEST_F(CertificateWatchTest, End_IsSaidOncePerDay) {
  EXPECT_DOUBLE_EQ(watch_->days_left(), 10);
  EXPECT_THAT(SaidAt(kTestNow), AllOf(HasSubstr("'gpu1' ends in 10 days"), HasSubstr("renew")));
  EXPECT_EQ(SaidAt(kTestNow + 3600), "");
  EXPECT_THAT(SaidAt(kTestNow + kDay), HasSubstr("ends in 9 days"));
  EXPECT_THAT(SaidAt(kTestNow + 10 * kDay - 60), HasSubstr("ends in 0 days"));
  EXPECT_THAT(SaidAt(kTestNow + 10 * kDay + 60), HasSubstr("has expired"));
  EXPECT_LT(watch_->days_left(), 0);
  EXPECT_EQ(SaidAt(kTestNow + 10 * kDay + 120), "");
  EXPECT_THAT(SaidAt(kTestNow + 11 * kDay + 120), HasSubstr("has expired"));
}

TEST_F(CertificateWatchTest, NewFiles_AreSaidAndCount) {
  (void)SaidAt(kTestNow);
  authority_.Write("w0", authority_.Make(TlsRole::kWorker, {"gpu1"}, 20 * kDay));
  EXPECT_THAT(SaidAt(kTestNow + 21 * kDay), HasSubstr("new certificate 'gpu1'"));
  EXPECT_DOUBLE_EQ(watch_->days_left(), 9);
}

TEST_F(CertificateWatchTest, UnusableFiles_AreSaidOnce) {
  (void)SaidAt(kTestNow);
  authority_.Write("w0", authority_.Make(TlsRole::kCoordinator, {"gpu1"}));
  EXPECT_THAT(SaidAt(kTestNow + 60), HasSubstr("is not for a worker"));
  EXPECT_EQ(SaidAt(kTestNow + 120), "");
  EXPECT_DOUBLE_EQ(watch_->days_left(), 10 - 120.0 / kDay);
}

TEST_F(CertificateWatchTest, Files_AreNotReadAllTheTime) {
  (void)SaidAt(kTestNow);
  authority_.Write("w0", authority_.Make(TlsRole::kCoordinator, {"gpu1"}));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) watch_->Look();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace weft
