// Updates and copies of pages find every process that has the table or cache, whenever it runs
// next.
#include "coordinator/engine/table_routes.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Slot Table(int32_t id, int64_t entries) { return {SlotKind::kPageTable, id, 0, entries * 4}; }
Slot Cache(int32_t id) { return {SlotKind::kCache, id, 0, 4096}; }

StepInput Updates(std::vector<TableUpdate> updates) {
  StepInput input;
  input.table_updates = std::move(updates);
  return input;
}

std::vector<std::string> TextOf(const StepInput& input) {
  std::vector<std::string> texts;
  for (const TableUpdate& update : input.table_updates) {
    texts.push_back(absl::StrCat(update.table, "[", update.entry, "]=", update.page));
  }
  for (const PageCopy& copy : input.page_copies) {
    texts.push_back(absl::StrCat("cache ", copy.cache, ": ", copy.from, " to ", copy.to));
  }
  return texts;
}

// What a process with these slots is told when it is launched.
std::vector<std::string> Tell(TableRoutes& routes, int32_t process,
                              const std::vector<Slot>& slots) {
  StepInput input;
  routes.Gather(process, slots, input);
  routes.Done(process, input);
  return TextOf(input);
}

TEST(TableRoutes, Updates_GoToAllThatHaveTheTable_Once) {
  TableRoutes routes(3);
  const std::vector<Slot> slots = {Table(0, 8)};
  routes.AddSlots(0, slots);
  routes.AddSlots(2, slots);
  routes.Note(Updates({{0, 5, 3}, {0, 1, 2}}));
  EXPECT_THAT(Tell(routes, 0, slots), ElementsAre("0[1]=2", "0[5]=3"));
  EXPECT_THAT(Tell(routes, 0, slots), IsEmpty());
  EXPECT_THAT(Tell(routes, 1, {}), IsEmpty());
  EXPECT_THAT(Tell(routes, 2, slots), ElementsAre("0[1]=2", "0[5]=3"));
}

TEST(TableRoutes, IdleProcess_IsToldAllThatItMissed) {
  TableRoutes routes(2);
  const std::vector<Slot> slots = {Table(0, 8)};
  routes.AddSlots(1, slots);
  routes.Note(Updates({{0, 0, 7}}));
  routes.Note(Updates({{0, 1, 8}}));
  routes.Note(Updates({{0, 0, 9}}));
  EXPECT_THAT(Tell(routes, 1, slots), ElementsAre("0[0]=9", "0[1]=8"));
}

TEST(TableRoutes, RefusedLaunch_IsToldAgain) {
  TableRoutes routes(1);
  const std::vector<Slot> slots = {Table(0, 8)};
  routes.AddSlots(0, slots);
  routes.Note(Updates({{0, 0, 7}}));
  StepInput refused;
  routes.Gather(0, slots, refused);
  routes.Note(Updates({{0, 2, 8}}));
  EXPECT_THAT(Tell(routes, 0, slots), ElementsAre("0[0]=7", "0[2]=8"));
}

TEST(TableRoutes, LaterOrLongerTable_StartsWithItsContent) {
  TableRoutes routes(2);
  routes.AddSlots(0, {Table(0, 8)});
  routes.Note(Updates({{0, 0, 4}, {0, 7, 5}}));
  routes.AddSlots(1, {Table(0, 4)});
  EXPECT_THAT(Tell(routes, 1, {Table(0, 4)}), ElementsAre("0[0]=4"));
  // Beyond its table.
  routes.Note(Updates({{0, 6, 6}}));
  EXPECT_THAT(Tell(routes, 1, {Table(0, 4)}), IsEmpty());
  routes.AddSlots(1, {Table(0, 8)});
  EXPECT_THAT(Tell(routes, 1, {Table(0, 8)}), ElementsAre("0[6]=6", "0[7]=5"));
}

TEST(TableRoutes, PageCopies_WaitForAProgramWithTheCache) {
  TableRoutes routes(2);
  routes.AddSlots(0, {Cache(0), Cache(1)});
  routes.AddSlots(1, {Cache(2)});
  StepInput input;
  input.page_copies = {{0, 1, 2, 64}, {1, 3, 4, 64}, {2, 5, 6, 64}};
  ASSERT_OK(routes.Check(input));
  routes.Note(input);
  EXPECT_THAT(Tell(routes, 0, {Cache(1)}), ElementsAre("cache 1: 3 to 4"));
  input.page_copies = {{0, 2, 3, 64}};
  routes.Note(input);
  EXPECT_THAT(Tell(routes, 0, {Cache(0), Cache(1)}),
              ElementsAre("cache 0: 1 to 2", "cache 0: 2 to 3"));
  EXPECT_THAT(Tell(routes, 0, {Cache(0), Cache(1)}), IsEmpty());
  EXPECT_THAT(Tell(routes, 1, {Cache(2)}), ElementsAre("cache 2: 5 to 6"));
}

TEST(TableRoutes, UnknownTablesAndCaches_AreRefused) {
  TableRoutes routes(2);
  routes.AddSlots(1, {Table(3, 8), Cache(0)});
  EXPECT_OK(routes.Check(Updates({{3, 7, 0}})));
  for (const TableUpdate& bad :
       {TableUpdate{2, 0, 0}, TableUpdate{3, 8, 0}, TableUpdate{3, -1, 0}, TableUpdate{3, 0, -1}}) {
    EXPECT_THAT(routes.Check(Updates({bad})),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no entry")));
  }
  StepInput input;
  input.page_copies = {{1, 0, 1, 64}};
  EXPECT_THAT(routes.Check(input),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no cache 1")));
}

}  // namespace
}  // namespace weft
