#include "coordinator/cluster/worker_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_scope.h"
#include "coordinator/cluster/fleet.h"
#include "coordinator/cluster/name_resolver.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "worker/worker.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostAddress Name() { return {.host = "fleet.test", .port = 7000, .socket_path = ""}; }

TEST(SystemResolverTest, Localhost_HasThatPort) {
  const ResolveName resolve = SystemResolver(std::chrono::seconds(60));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> addresses,
                         resolve({.host = "localhost", .port = 7123, .socket_path = ""}));
    for (const std::string& address : addresses) {
      EXPECT_TRUE(address == "127.0.0.1:7123" || address == "[::1]:7123") << address;
    }
    EXPECT_FALSE(addresses.empty());
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> numbers,
                       resolve({.host = "10.1.2.3", .port = 5, .socket_path = ""}));
  EXPECT_THAT(numbers, ElementsAre("10.1.2.3:5"));
}

TEST(SystemResolverTest, Nonsense_ErrorNamesIt) {
  const ResolveName resolve = SystemResolver(std::chrono::seconds(60));
  EXPECT_THAT(resolve({.host = "no such..name", .port = 1, .socket_path = ""}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'no such..name'")));
}

TEST(WorkerDirectoryTest, Look_SortedAndOnce) {
  WorkerDirectory directory(Name(), [](const HostAddress& name) {
    EXPECT_EQ(name.host, "fleet.test");
    return std::vector<std::string>{"b", "a", "b", "c"};
  });
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> found, directory.Look());
  EXPECT_THAT(found, ElementsAre("a", "b", "c"));
  WorkerDirectory large(Name(), [](const HostAddress&) {
    std::vector<std::string> all;
    for (int i = 0; i < 257; ++i) all.push_back(std::to_string(i));
    return all;
  });
  EXPECT_THAT(large.Look(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("257")));
}

TEST(WorkerDirectoryTest, Await_AsksUntilThereIsOne) {
  int asked = 0;
  WorkerDirectory directory(Name(),
                            [&](const HostAddress&) -> absl::StatusOr<std::vector<std::string>> {
                              if (++asked < 3) return absl::UnavailableError("nobody yet");
                              return std::vector<std::string>{"a"};
                            });
  const SystemClock clock;
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> found,
                       directory.Await(clock.Now() + std::chrono::seconds(60)));
  EXPECT_THAT(found, ElementsAre("a"));
  EXPECT_EQ(asked, 3);
  asked = -1000000;
  EXPECT_THAT(directory.Await(clock.Now() + milliseconds(20)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody yet")));
}

TEST(WorkerDirectoryTest, Await_WaitsAtFirstForThoseOfItsPatience) {
  std::vector<std::string> there = {"a"};
  WorkerDirectory::Patience patience;
  patience.least = 2;
  WorkerDirectory directory(
      {}, [&](const HostAddress&) { return there; }, "the joined", patience);
  const SystemClock clock;
  EXPECT_FALSE(directory.Started());
  EXPECT_THAT(directory.Await(clock.Now()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("1 of the joined are there, and 2 are waited for")));
  there = {"a", "b"};
  EXPECT_TRUE(directory.Started());
  there = {"b"};  // afterwards one is enough
  EXPECT_TRUE(directory.Started());
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> found, directory.Await(clock.Now()));
  EXPECT_THAT(found, ElementsAre("b"));
}

TEST(WorkerDirectoryTest, Number_StaysWhileTheWorkerIsThere) {
  WorkerDirectory directory(Name(), nullptr);
  using Names = std::vector<std::string>;
  EXPECT_THAT(directory.Number(Names{"x", "y", "z"}), ElementsAre(0, 1, 2));
  EXPECT_THAT(directory.Number(Names{"x", "z"}), ElementsAre(0, 2));  // y has left
  EXPECT_THAT(directory.Number(Names{"v", "x", "z"}), ElementsAre(1, 0, 2));
  EXPECT_THAT(directory.Number(Names{"y", "z", "v"}), ElementsAre(0, 2, 1));
}

// Workers at Unix sockets; a link to a socket is another address of the same worker.
class WorkerSearchTest : public ::testing::Test {
 protected:
  std::string Address(int number) const {
    return "unix:" + folder_.File("w" + std::to_string(number) + ".sock");
  }
  std::unique_ptr<Worker> StartWorker(int number) {
    WorkerOptions options;
    options.listen = Address(number);
    options.threads = 1;
    options.transport = "grpc";
    options.self_test = false;
    auto worker = Worker::Start(options, nullptr, logger_);
    EXPECT_THAT(worker, IsOk());
    return worker.ok() ? *std::move(worker) : nullptr;
  }
  std::shared_ptr<WorkerDirectory> Directory() {
    return std::make_shared<WorkerDirectory>(Name(), [this](const HostAddress&) {
      MutexLock lock(mutex_);
      return addresses_;
    });
  }
  void Set(std::vector<std::string> addresses) {
    MutexLock lock(mutex_);
    addresses_ = std::move(addresses);
  }
  FleetOptions Options(std::shared_ptr<WorkerDirectory> directory) {
    FleetOptions options;
    options.directory = std::move(directory);
    options.transport = "grpc";
    return options;
  }
  static std::vector<std::string> NamesOf(Fleet& fleet) {
    std::vector<std::string> names;
    for (int32_t i = 0; i < fleet.worker_count(); ++i) names.push_back(fleet.worker(i).name());
    return names;
  }

  const TemporaryFolder folder_;
  Logger logger_{"test", LogLevel::kError};
  Mutex mutex_;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(WorkerSearchTest, Fleet_OneWorkerAtTwoAddresses_IsOne_AndWhoIsNotThereIsLeftOut) {
  const auto first = StartWorker(1);
  const auto second = StartWorker(2);
  const std::string alias = folder_.File("w0.sock");
  std::filesystem::create_symlink(folder_.File("w2.sock"), alias);
  Set({Address(0), Address(1), Address(2), Address(3)});
  const auto directory = Directory();
  {
    ASSERT_OK_AND_ASSIGN(const auto fleet, Fleet::Open(Options(directory), logger_));
    EXPECT_THAT(NamesOf(*fleet), ElementsAre("w0", "w1"));
    EXPECT_EQ(fleet->worker(0).address().Text(), Address(0));
    EXPECT_THAT(fleet->hosts(), ElementsAre("w0", "w1", "local"));
  }
  // Its other address remains: it is called what it was, and what comes new is w2.
  std::filesystem::remove(alias);
  const auto third = StartWorker(0);
  ASSERT_OK_AND_ASSIGN(const auto fleet, Fleet::Open(Options(directory), logger_));
  EXPECT_THAT(NamesOf(*fleet), ElementsAre("w0", "w1", "w2"));
  EXPECT_EQ(fleet->worker(0).address().Text(), Address(2));
  EXPECT_EQ(fleet->worker(2).address().Text(), Address(0));
}

TEST_F(WorkerSearchTest, Fleet_WorkerGone_TheOthersKeepTheirNames) {
  auto first = StartWorker(0);
  const auto second = StartWorker(1);
  Set({Address(0), Address(1)});
  const auto directory = Directory();
  ASSERT_OK(Fleet::Open(Options(directory), logger_).status());
  first.reset();
  {
    ASSERT_OK_AND_ASSIGN(const auto fleet, Fleet::Open(Options(directory), logger_));
    EXPECT_THAT(NamesOf(*fleet), ElementsAre("w1"));
    EXPECT_EQ(fleet->worker(0).devices()[0]->host(), "w1");
  }
  first = StartWorker(0);  // another process in its place
  ASSERT_OK_AND_ASSIGN(const auto fleet, Fleet::Open(Options(directory), logger_));
  EXPECT_THAT(NamesOf(*fleet), ElementsAre("w0", "w1"));
}

TEST_F(WorkerSearchTest, Fleet_NobodyThere_ErrorSaysSoAndCountsAsLost) {
  Set({Address(5), Address(6)});
  const absl::Status status = Fleet::Open(Options(Directory()), logger_).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("none of the 2 addresses"), HasSubstr("fleet.test"))));
  EXPECT_EQ(ScopeOf(status), ErrorScope::kWorker);
}

TEST_F(WorkerSearchTest, Watch_NewWorker_IsNewsAndOldOnesAreNot) {
  const auto first = StartWorker(1);
  std::filesystem::create_symlink(folder_.File("w1.sock"), folder_.File("w0.sock"));
  const auto directory = Directory();
  Set({Address(1)});
  RemoteWorkerOptions address;
  address.name = "w0";
  address.address = Address(1);
  ASSERT_OK_AND_ASSIGN(const auto worker, RemoteWorker::Connect(address, nullptr));
  WorkerWatch::Options options;
  options.period = milliseconds(20);
  options.quiet_start = milliseconds(0);
  ASSERT_OK_AND_ASSIGN(const auto watch,
                       WorkerWatch::Start(*directory, {WorkerIdentity(worker->info())}, options));
  Set({Address(0), Address(1), Address(2)});  // an alias, and nobody so far
  const SystemClock clock;
  const Clock::TimePoint some = clock.Now() + milliseconds(500);
  while (clock.Now() < some) {
    ASSERT_OK(watch->news());
    std::this_thread::yield();
  }
  const auto second = StartWorker(2);
  const Clock::TimePoint late = clock.Now() + std::chrono::seconds(60);
  while (watch->news().ok() && clock.Now() < late) std::this_thread::yield();
  EXPECT_THAT(watch->news(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(Address(2))));
}

}  // namespace
}  // namespace weft
