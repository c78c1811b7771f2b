#include "common/transport/payload_pool.h"

#include <gtest/gtest.h>

#include <utility>

namespace weft {
namespace {

TEST(PayloadPoolTest, Take_AfterGive_SameMemory) {
  PayloadPool pool(1000000);
  Payload payload = pool.Take(100000);
  ASSERT_EQ(payload.size(), 100000u);
  const uint8_t* memory = payload.data();
  pool.Give(std::move(payload));
  EXPECT_EQ(pool.held_bytes(), 100000);
  payload = pool.Take(60000);
  EXPECT_EQ(payload.data(), memory);
  EXPECT_EQ(payload.size(), 60000u);
  EXPECT_EQ(pool.held_bytes(), 0);
}

TEST(PayloadPoolTest, Take_NoneFits_LeavesThem) {
  PayloadPool pool(1000000);
  pool.Give(Payload(100000));
  EXPECT_EQ(pool.Take(100001).size(), 100001u);
  EXPECT_EQ(pool.Take(PayloadPool::kSmallestBytes - 1).size(), PayloadPool::kSmallestBytes - 1);
  pool.Give(Payload(800000));
  EXPECT_EQ(pool.Take(PayloadPool::kSmallestBytes).capacity(), 100000u);
  EXPECT_EQ(pool.held_bytes(), 800000);
}

TEST(PayloadPoolTest, Give_BeyondCapacity_OldestGoes) {
  PayloadPool pool(250000);
  pool.Give(Payload(100000));
  pool.Give(Payload(110000));
  pool.Give(Payload(120000));
  EXPECT_EQ(pool.held_bytes(), 230000);
  pool.Give(Payload(250001));
  pool.Give(Payload(100));
  EXPECT_EQ(pool.held_bytes(), 230000);
  EXPECT_EQ(pool.Take(100000).capacity(), 110000u);
}

}  // namespace
}  // namespace weft
