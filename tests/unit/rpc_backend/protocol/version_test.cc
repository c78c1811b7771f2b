#include "rpc_backend/protocol/version.h"

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

ProtocolHello Hello(uint32_t major, uint32_t minor, const std::string& release) {
  ProtocolHello hello = OwnHello();
  hello.major = major;
  hello.minor = minor;
  hello.release = release;
  return hello;
}

TEST(Version, SameBuild_Works) {
  EXPECT_OK(CheckHello(OwnHello(), "coordinator", OwnHello(), "worker w0"));
  EXPECT_EQ(OwnHello().major, kProtocolMajor);
  EXPECT_FALSE(OwnHello().release.empty());
}

TEST(Version, MinorDifference_Works) {
  EXPECT_OK(CheckHello(Hello(1, 4, "0.1"), "coordinator", Hello(1, 9, "0.2"), "worker w0"));
  EXPECT_OK(CheckHello(Hello(1, 9, "0.2"), "coordinator", Hello(1, 4, "0.1"), "worker w0"));
}

TEST(Version, MajorDifference_SaysWhatToUpgrade) {
  EXPECT_THAT(
      CheckHello(Hello(1, 4, "0.1"), "coordinator", Hello(2, 1, "0.3"), "worker 10.0.0.2:7000"),
      StatusIs(kRefused,
               "worker 10.0.0.2:7000 speaks protocol 2.1 (weft 0.3), this coordinator 1.4 "
               "(weft 0.1): upgrade the coordinator"));
  EXPECT_THAT(CheckHello(Hello(2, 1, "0.3"), "worker", Hello(1, 4, "0.1"), "coordinator c"),
              StatusIs(kRefused,
                       "coordinator c speaks protocol 1.4 (weft 0.1), this worker 2.1 (weft 0.3): "
                       "upgrade coordinator c"));
}

TEST(Version, OtherOperations_AreRefusedWithBothVersions) {
  ProtocolHello other = Hello(1, 0, "0.1.9");
  other.op_set.bytes[0] ^= 1;
  const ProtocolHello own = Hello(1, 0, "0.1.10");
  const absl::Status refused = CheckHello(own, "coordinator", other, "worker w0");
  EXPECT_THAT(refused, StatusIs(kRefused, HasSubstr("worker w0 has other operations")));
  EXPECT_THAT(refused, StatusIs(kRefused, HasSubstr("(weft 0.1.9)")));
  EXPECT_THAT(refused, StatusIs(kRefused, HasSubstr(": upgrade worker w0")));
  EXPECT_THAT(CheckHello(other, "coordinator", own, "worker w0"),
              StatusIs(kRefused, HasSubstr(": upgrade the coordinator")));
  other.release = own.release;
  EXPECT_THAT(CheckHello(own, "coordinator", other, "worker w0"),
              StatusIs(kRefused, HasSubstr("build both from the same sources")));
  other.release = "nightly";
  EXPECT_THAT(CheckHello(own, "coordinator", other, "worker w0"),
              StatusIs(kRefused, HasSubstr("build both from the same sources")));
}

TEST(Version, HostileRelease_IsShortAndClean) {
  const absl::Status refused =
      CheckHello(OwnHello(), "coordinator", Hello(9, 0, "\n" + std::string(10000, 'x')), "worker");
  EXPECT_THAT(refused, StatusIs(kRefused, HasSubstr("(weft \\nxx")));
  EXPECT_LT(refused.message().size(), 200u);
}

TEST(Version, OpSetHash_IsTheSameEachTime) { EXPECT_EQ(OpSetHash(), OpSetHash()); }

TEST(Version, SharedFeatures_AreThoseOfBoth) {
  ProtocolHello own = OwnHello();
  own.features = {"a", "b", "c"};
  ProtocolHello other = OwnHello();
  other.features = {"c", "d", "a"};
  EXPECT_EQ(SharedFeatures(own, other), (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace weft
