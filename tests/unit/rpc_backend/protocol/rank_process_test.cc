// Ranks that are processes with UCX ports, of which one is killed or stopped in a collective.
#include <signal.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/child_process.h"
#include "tests/support/number_argument.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kDeadline{3000};

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

class RankProcessTest : public ::testing::Test {
 protected:
  void Start(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      children_.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{WEFT_RANK_PROCESS, absl::StrCat(r), absl::StrCat(ranks),
                                   folder_.path(), absl::StrCat(kDeadline.count())}));
    }
    for (const auto& child : children_) {
      ASSERT_OK_AND_ASSIGN(const std::string line, child->ReadLine(Late()));
      ASSERT_EQ(line, "ready");
    }
    // Long enough for some reductions in most runs; the test holds in all.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  // What the rank printed, once it has ended its last collective.
  std::string Error(int rank) {
    const absl::StatusOr<std::string> line = children_[rank]->ReadLine(Late());
    return line.ok() ? *line : std::string(line.status().message());
  }

  // Those that stay wait for lines and use no processor.
  void ExpectIdle(int rank) {
    const auto used = [&] {
      return NumberArgument<int64_t>(children_[rank]->Ask("cpu", Late())->c_str());
    };
    const int64_t before = used();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LT(used() - before, 100) << "rank " << rank;
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
};

TEST_F(RankProcessTest, KilledRank_SurvivorsNameItAndRest) {
  Start(3);
  children_[1]->Kill();
  for (const int rank : {0, 2}) {
    EXPECT_THAT(Error(rank), HasSubstr("peer 1 (r1) is lost"));
  }
  for (const int rank : {0, 2}) ExpectIdle(rank);
}

TEST_F(RankProcessTest, StoppedRank_DeadlineNamesIt) {
  Start(2);
  children_[1]->Signal(SIGSTOP);
  EXPECT_THAT(Error(0), HasSubstr("rank 1"));
  ExpectIdle(0);
  children_[1]->Signal(SIGCONT);
}

}  // namespace
}  // namespace weft
