// Workers that join a coordinator, by themselves and as others might say they do.
#include "coordinator/cluster/joined_workers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/membership/join_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "worker/worker.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kToken[] = "the-token-of-both-sides";
constexpr std::chrono::seconds kPatience{60};

class JoinedWorkersTest : public ::testing::Test {
 protected:
  std::unique_ptr<JoinedWorkers> Open(const std::string& listen, milliseconds lease) {
    JoinedWorkersOptions options;
    options.listen = *ParseHostAddress(listen, 0, 0);
    options.token_file = token_file_;
    options.insecure = true;
    options.lease = lease;
    auto joined = JoinedWorkers::Open(options, logger_);
    EXPECT_THAT(joined, IsOk());
    return joined.ok() ? *std::move(joined) : nullptr;
  }
  // `coordinator` may be empty: it does not join.
  std::unique_ptr<Worker> StartWorker(const std::string& listen, const std::string& coordinator) {
    WorkerOptions options;
    options.listen = listen;
    options.threads = 1;
    options.transport = "grpc";
    options.self_test = false;
    options.insecure = true;
    options.name = "beta";
    options.join = coordinator;
    if (!coordinator.empty()) options.join_token_file = token_file_;
    auto worker = Worker::Start(options, nullptr, logger_);
    EXPECT_THAT(worker, IsOk());
    return worker.ok() ? *std::move(worker) : nullptr;
  }
  // Who the worker at `answers` is, said to be at `address`.
  static JoinClaim ClaimOf(const std::string& answers, const std::string& address) {
    RemoteWorkerOptions options;
    options.address = answers;
    const auto info = RemoteWorker::Ask(options);
    EXPECT_THAT(info, IsOk());
    return {.name = info->name,
            .address = address,
            .incarnation = info->incarnation,
            .host_identity = info->host_identity,
            .leaving = false};
  }
  static absl::Status Join(const JoinedWorkers& coordinator, const JoinClaim& claim) {
    JoinClientOptions options;
    options.coordinator = *ParseHostAddress(coordinator.address(), 0);
    const auto client = JoinClient::Create(options);
    EXPECT_THAT(client, IsOk());
    return (*client)->Join(JoinToken::KeyOf(kToken), claim).status();
  }
  static std::vector<std::string> AddressesOf(JoinedWorkers& joined) {
    return joined.Addresses().value_or(std::vector<std::string>());
  }
  // Whether the members become those in time.
  bool Await(JoinedWorkers& joined, const std::vector<std::string>& wanted) {
    Mutex mutex;
    CondVar never;
    const Clock::TimePoint deadline = clock_.Now() + kPatience;
    while (clock_.Now() < deadline) {
      if (AddressesOf(joined) == wanted) return true;
      MutexLock lock(mutex);
      (void)never.WaitUntil(mutex, clock_.Now() + milliseconds(10));
    }
    return false;
  }

  const SystemClock clock_;
  const TemporaryFolder folder_;
  const std::string token_file_ = folder_.Write("token", kToken);
  Logger logger_{"joined_workers_test", LogLevel::kError};
};

TEST_F(JoinedWorkersTest, Worker_JoinsStaysAndLeaves) {
  const auto joined = Open("127.0.0.1:0", milliseconds(600));
  EXPECT_THAT(joined->Addresses(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(joined->address())));
  auto worker = StartWorker("127.0.0.1:0", joined->address());
  ASSERT_TRUE(Await(*joined, {worker->address()}));
  // Longer than its lease.
  Mutex mutex;
  CondVar never;
  const Clock::TimePoint later = clock_.Now() + milliseconds(1500);
  while (clock_.Now() < later) {
    ASSERT_THAT(AddressesOf(*joined), ElementsAre(worker->address()));
    MutexLock lock(mutex);
    (void)never.WaitUntil(mutex, clock_.Now() + milliseconds(20));
  }
  worker.reset();
  EXPECT_THAT(AddressesOf(*joined), IsEmpty());  // it said so
}

TEST_F(JoinedWorkersTest, Draining_Leaves) {
  const auto joined = Open("127.0.0.1:0", std::chrono::hours(1));
  const auto worker = StartWorker("127.0.0.1:0", joined->address());
  ASSERT_TRUE(Await(*joined, {worker->address()}));
  worker->Drain();
  EXPECT_TRUE(Await(*joined, {}));
  EXPECT_THAT(Join(*joined, ClaimOf(worker->address(), worker->address())),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("draining")));
}

TEST_F(JoinedWorkersTest, Lease_OfOneThatIsGone_Ends) {
  const auto joined = Open("127.0.0.1:0", milliseconds(300));
  const auto worker = StartWorker("127.0.0.1:0", "");
  ASSERT_OK(Join(*joined, ClaimOf(worker->address(), worker->address())));
  EXPECT_THAT(AddressesOf(*joined), ElementsAre(worker->address()));
  EXPECT_TRUE(Await(*joined, {}));
}

TEST_F(JoinedWorkersTest, Order_OfStarts_DoesNotMatter) {
  std::string address;
  {
    const auto before = Open("127.0.0.1:0", std::chrono::hours(1));
    address = before->address();
  }
  const auto worker = StartWorker("127.0.0.1:0", address);
  for (int i = 0; i < 2; ++i) {  // and started again
    const auto joined = Open(address, milliseconds(600));
    ASSERT_NE(joined, nullptr);
    EXPECT_TRUE(Await(*joined, {worker->address()})) << i;
  }
}

TEST_F(JoinedWorkersTest, Worker_StartedAgain_IsThereOnce) {
  const auto joined = Open("127.0.0.1:0", std::chrono::hours(1));
  auto worker = StartWorker("127.0.0.1:0", "");
  const std::string address = worker->address();
  const JoinClaim first = ClaimOf(address, address);
  ASSERT_OK(Join(*joined, first));
  worker.reset();  // without a word
  worker = StartWorker(address, joined->address());
  ASSERT_NE(worker, nullptr);
  const JoinClaim second = ClaimOf(address, address);
  EXPECT_NE(first.incarnation, second.incarnation);
  ASSERT_OK(Join(*joined, second));
  EXPECT_THAT(AddressesOf(*joined), ElementsAre(address));
  // The one of before is not believed any more.
  EXPECT_THAT(Join(*joined, first),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("another worker")));
}

TEST_F(JoinedWorkersTest, Worker_AtTwoAddresses_IsOne) {
  const auto joined = Open("127.0.0.1:0", std::chrono::hours(1));
  const auto worker = StartWorker("0.0.0.0:0", "");
  const std::string port = worker->address().substr(worker->address().rfind(':'));
  ASSERT_OK(Join(*joined, ClaimOf("127.0.0.1" + port, "127.0.0.1" + port)));
  ASSERT_OK(Join(*joined, ClaimOf("127.0.0.1" + port, "127.0.0.2" + port)));
  EXPECT_THAT(AddressesOf(*joined), ElementsAre("127.0.0.2" + port));
}

// From a wildcard address it finds out itself where the coordinator reaches it.
TEST_F(JoinedWorkersTest, Worker_OnAllInterfaces_GivesTheOneTowardsTheCoordinator) {
  const auto joined = Open("127.0.0.1:0", std::chrono::hours(1));
  const auto worker = StartWorker("0.0.0.0:0", joined->address());
  const std::string port = worker->address().substr(worker->address().rfind(':'));
  EXPECT_TRUE(Await(*joined, {"127.0.0.1" + port}));
}

TEST_F(JoinedWorkersTest, Addresses_AreCheckedFromHere) {
  const auto joined = Open("127.0.0.1:0", std::chrono::hours(1));
  const auto worker = StartWorker("127.0.0.1:0", "");
  const auto other = StartWorker("127.0.0.1:0", "");
  const JoinClaim claim = ClaimOf(worker->address(), worker->address());
  const auto at = [&](const std::string& address) {
    JoinClaim moved = claim;
    moved.address = address;
    return Join(*joined, moved);
  };
  EXPECT_THAT(at("127.0.0.1:1"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          AllOf(HasSubstr("'beta'"), HasSubstr("127.0.0.1:1"),
                                                HasSubstr("--announce"))));
  EXPECT_THAT(at(other->address()),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("another worker")));
  for (const char* text : {"unix:/tmp/w.sock", "10.0.0.1", "10.0.0.1:0", ":7000", "a b:7000"}) {
    EXPECT_FALSE(at(text).ok()) << text;
  }
  EXPECT_THAT(AddressesOf(*joined), IsEmpty());
  EXPECT_OK(at(worker->address()));
}

TEST_F(JoinedWorkersTest, Options_ThatAreUnsafe_AreRefused) {
  JoinedWorkersOptions options;
  options.listen = *ParseHostAddress("0.0.0.0:0", 0, 0);
  options.token_file = token_file_;
  EXPECT_THAT(JoinedWorkers::Open(options, logger_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--tls DIR"), HasSubstr("--insecure"))));
  options.listen = *ParseHostAddress("unix:/tmp/weft-join.sock", 0, 0);
  EXPECT_THAT(JoinedWorkers::Open(options, logger_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ADDR:PORT")));
  options.listen = *ParseHostAddress("127.0.0.1:0", 0, 0);
  options.token_file = folder_.File("none");
  EXPECT_THAT(JoinedWorkers::Open(options, logger_), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace weft
