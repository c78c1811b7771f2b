#include "rpc_backend/protocol/status_codec.h"

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::Le;
using ::testing::SizeIs;

TEST(StatusCodec, EveryCode_ComesBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(WireCode(status), code);
    EXPECT_EQ(StatusFromWire(WireCode(status), WireMessage(status)), status);
  }
  EXPECT_OK(StatusFromWire(WireCode(absl::OkStatus()), ""));
}

TEST(StatusCodec, UnknownCode_IsUnknown) {
  for (const int64_t code : {int64_t{-1}, int64_t{17}, int64_t{1} << 40}) {
    EXPECT_THAT(StatusFromWire(code, "why"), StatusIs(absl::StatusCode::kUnknown, "why"));
  }
}

TEST(StatusCodec, HostileMessage_IsOneShortLine) {
  EXPECT_THAT(StatusFromWire(3, "a\nb\x1B"),
              StatusIs(absl::StatusCode::kInvalidArgument, "a\\nb\\x1b"));
  const absl::Status status = StatusFromWire(3, std::string(1 << 20, 'x'));
  EXPECT_THAT(std::string(status.message()), SizeIs(Le(4096)));
  EXPECT_THAT(WireMessage(absl::InternalError(std::string(1 << 20, 'x'))), SizeIs(Le(4096)));
}

}  // namespace
}  // namespace weft
