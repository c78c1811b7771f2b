#include <gtest/gtest.h>

#include "common/transport/ucx/ucx_transport.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

TEST(NoUcxTest, NewUcxTransport_BuildWithoutUcx_Unimplemented) {
  EXPECT_THAT(NewUcxTransport({}),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("libucx-dev")));
}

}  // namespace
}  // namespace weft
