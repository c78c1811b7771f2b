#include "common/base/system_random.h"

#include <gtest/gtest.h>

#include <array>

namespace weft {
namespace {

TEST(SystemRandomTest, Fill_GivesOthersEachTime) {
  std::array<uint8_t, 32> first = {}, second = {};
  ASSERT_TRUE(FillWithSystemRandom(absl::MakeSpan(first)).ok());
  ASSERT_TRUE(FillWithSystemRandom(absl::MakeSpan(second)).ok());
  EXPECT_NE(first, second);
  EXPECT_TRUE(FillWithSystemRandom({}).ok());
}

}  // namespace
}  // namespace weft
