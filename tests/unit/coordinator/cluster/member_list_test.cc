#include "coordinator/cluster/member_list.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Clock::TimePoint At(int second) { return Clock::TimePoint(std::chrono::seconds(second)); }

Member NewMember(std::string identity, std::string address, int until) {
  return {std::move(identity), "name", std::move(address), At(until)};
}

TEST(MemberListTest, Leases_EndUnlessRenewed) {
  MemberList list;
  ASSERT_OK(list.Put(NewMember("x", "a:1", 10)));
  ASSERT_OK(list.Put(NewMember("y", "b:1", 10)));
  EXPECT_TRUE(list.Renew("x", "a:1", At(20)));
  EXPECT_TRUE(list.Renew("x", "a:1", At(15)));  // later ones may come first
  EXPECT_THAT(list.TakeExpired(At(10)), IsEmpty());
  const std::vector<Member> gone = list.TakeExpired(At(11));
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].address, "b:1");
  EXPECT_THAT(list.Addresses(), ElementsAre("a:1"));
  EXPECT_FALSE(list.Renew("y", "b:1", At(30)));
  EXPECT_THAT(list.TakeExpired(At(20)), IsEmpty());
  EXPECT_THAT(list.TakeExpired(At(21)), SizeIs(1));
}

TEST(MemberListTest, Worker_WithTwoAddresses_IsThereOnce) {
  MemberList list;
  ASSERT_OK(list.Put(NewMember("x", "a:1", 10)));
  EXPECT_FALSE(list.Renew("x", "b:1", At(20)));  // to be looked at before it is believed
  ASSERT_OK(list.Put(NewMember("x", "b:1", 20)));
  EXPECT_THAT(list.Addresses(), ElementsAre("b:1"));
}

TEST(MemberListTest, Address_HasItsLastWorkerOnly) {
  MemberList list;
  ASSERT_OK(list.Put(NewMember("before", "a:1", 10)));
  ASSERT_OK(list.Put(NewMember("other", "b:1", 10)));
  ASSERT_OK(list.Put(NewMember("after", "a:1", 10)));
  EXPECT_THAT(list.Addresses(), UnorderedElementsAre("a:1", "b:1"));
  EXPECT_FALSE(list.Remove("before"));
  EXPECT_TRUE(list.Remove("after"));
  EXPECT_THAT(list.Addresses(), ElementsAre("b:1"));
}

TEST(MemberListTest, Count_HasAnEnd) {
  MemberList list;
  for (size_t i = 0; i < MemberList::kMostMembers; ++i) {
    ASSERT_OK(list.Put(NewMember("w" + std::to_string(i), "a:" + std::to_string(i), 10)));
  }
  EXPECT_THAT(list.Put(NewMember("more", "b:1", 10)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("256")));
  ASSERT_OK(list.Put(NewMember("again", "a:3", 10)));  // in the place of w3
  EXPECT_TRUE(list.Remove("w5"));
  ASSERT_OK(list.Put(NewMember("more", "b:1", 10)));
}

}  // namespace
}  // namespace weft
