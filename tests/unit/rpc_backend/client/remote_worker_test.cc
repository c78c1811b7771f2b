#include "rpc_backend/client/remote_worker.h"

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_scope.h"
#include "common/base/mutex.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/protocol/version.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<RemoteWorker>> Connect(const FakeWorker& worker) {
  return RemoteWorker::Connect(TestWorkerOptions(worker.address()), nullptr);
}

// Waits for the loss of a worker and keeps what was said of it.
class LossWatch {
 public:
  explicit LossWatch(RemoteWorker& worker) {
    worker.AddLossListener([this](const absl::Status& lost) {
      MutexLock lock(mutex_);
      ++told_;
      lost_ = lost;
      changed_.NotifyAll();
    });
  }
  absl::Status Await() {
    MutexLock lock(mutex_);
    const Clock::TimePoint deadline = SystemClock().Now() + std::chrono::seconds(20);
    while (told_ == 0 && changed_.WaitUntil(mutex_, deadline)) {
    }
    return lost_;
  }
  int told() {
    MutexLock lock(mutex_);
    return told_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int told_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

TEST(RemoteWorkerTest, Connect_HonestWorker_DevicesAndSession) {
  FakeWorker fake;
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  EXPECT_EQ(worker->label(), "worker w0 (" + fake.address() + ")");
  EXPECT_EQ(worker->info().name, "fake");
  EXPECT_EQ(worker->info().transports, std::vector<std::string>{"grpc"});
  std::vector<std::string> names;
  for (const Device* device : worker->devices()) {
    names.push_back(device->name());
    EXPECT_EQ(device->host(), "w0");
  }
  EXPECT_THAT(names, ElementsAre("w0.gpu0", "w0.accel0", "w0.cpu0"));
  EXPECT_EQ(fake.open_sessions(), 1);
  EXPECT_OK(worker->lost());
  ASSERT_OK_AND_ASSIGN(const WorkerStatistics statistics, worker->Statistics());
  EXPECT_EQ(statistics.steps, 5);
  ASSERT_EQ(statistics.peers.size(), 1u);
  EXPECT_EQ(statistics.peers[0].bytes_sent, 77);
  worker->Close();
  EXPECT_TRUE(fake.AwaitSessions(0));
  EXPECT_THAT(worker->Statistics(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("closed")));
}

TEST(RemoteWorkerTest, Devices_StateTheirMachineAndHowTheyRound) {
  FakeWorker fake;
  fake.edit_hello = [](proto::HelloReply& reply) {
    reply.mutable_devices(0)->set_arithmetic("in a way of its own");
  };
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  const Device& first = *worker->devices()[0];
  EXPECT_EQ(first.machine(), "this machine");
  EXPECT_EQ(first.arithmetic(), "in a way of its own");
  EXPECT_EQ(worker->devices()[1]->arithmetic(), "not there");
  // Of a worker that does not know its machine nothing is known.
  FakeWorker lost;
  lost.edit_hello = [](proto::HelloReply& reply) { reply.clear_host_identity(); };
  ASSERT_OK_AND_ASSIGN(const auto other, Connect(lost));
  EXPECT_EQ(other->devices()[0]->machine(), other->devices()[0]->host());
}

TEST(RemoteWorkerTest, Connect_OtherProtocol_RefusedWithBothVersions) {
  FakeWorker fake;
  fake.edit_hello = [](proto::HelloReply& reply) {
    reply.mutable_version()->set_major(kProtocolMajor + 1);
  };
  EXPECT_THAT(Connect(fake), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("worker w0 (127.0.0.1:"),
                                            HasSubstr("upgrade the coordinator"))));
  EXPECT_EQ(fake.calls("Session"), 0);
}

TEST(RemoteWorkerTest, Connect_OtherOperations_Refused) {
  FakeWorker fake;
  fake.edit_hello = [](proto::HelloReply& reply) { reply.set_op_set(std::string(32, 'x')); };
  EXPECT_THAT(Connect(fake),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("worker w0 (127.0.0.1:")));
}

TEST(RemoteWorkerTest, Connect_OtherMinorVersion_Works) {
  FakeWorker fake;
  fake.edit_hello = [](proto::HelloReply& reply) {
    reply.mutable_version()->set_minor(kProtocolMinor + 7);
    reply.add_features("of the future");
  };
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  EXPECT_TRUE(worker->info().features.empty());
}

TEST(RemoteWorkerTest, Connect_NobodyListens_UnavailableNamesAddress) {
  std::string address;
  {
    const FakeWorker fake;
    address = fake.address();
  }
  EXPECT_THAT(RemoteWorker::Connect(TestWorkerOptions(address), nullptr),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker w0 (" + address + ")")));
}

TEST(RemoteWorkerTest, Connect_Draining_Unavailable) {
  FakeWorker fake;
  fake.edit_hello = [](proto::HelloReply& reply) { reply.set_draining(true); };
  EXPECT_THAT(Connect(fake), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("draining")));
}

TEST(RemoteWorkerTest, Connect_NoAnswer_DeadlineExceeded) {
  for (const char* verb : {"Hello", "Session"}) {
    FakeWorker fake;
    fake.hang[verb] = true;
    RemoteWorkerOptions options = TestWorkerOptions(fake.address());
    options.connect_timeout = std::chrono::milliseconds(50);
    EXPECT_THAT(RemoteWorker::Connect(options, nullptr),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(verb)));
  }
}

TEST(RemoteWorkerTest, Connect_BadOptions_Refused) {
  RemoteWorkerOptions options = TestWorkerOptions("a b");
  EXPECT_THAT(RemoteWorker::Connect(options, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a b'")));
  options = TestWorkerOptions("a");
  options.loss_after = options.ping_period;
  EXPECT_THAT(RemoteWorker::Connect(options, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lost after")));
}

TEST(RemoteWorkerTest, Connect_HelloMakesNoSense_RefusedNamingField) {
  const std::vector<std::pair<std::string, std::function<void(proto::HelloReply&)>>> cases = {
      {"devices",
       [](auto& reply) {
         for (int i = 0; i < 1000; ++i) *reply.add_devices() = reply.devices(0);
       }},
      {"name", [](auto& reply) { reply.set_name(std::string(100000, 'n')); }},
      {"name", [](auto& reply) { reply.set_name("two\nlines"); }},
      {"incarnation", [](auto& reply) { reply.set_incarnation("abc"); }},
      {"memory_free", [](auto& reply) { reply.mutable_devices(0)->set_memory_free(-1); }},
      {"alignment", [](auto& reply) { reply.mutable_devices(1)->set_alignment(0); }},
      {"alignment", [](auto& reply) { reply.mutable_devices(1)->set_alignment(48); }},
      {"kind", [](auto& reply) { reply.mutable_devices(2)->set_kind("toaster"); }},
      {"reads", [](auto& reply) { reply.mutable_devices(2)->add_reads(17); }},
      {"max_buffer_bytes", [](auto& reply) { reply.mutable_devices(2)->set_max_buffer_bytes(-5); }},
      {"sessions", [](auto& reply) { reply.set_sessions(-1); }},
  };
  for (const auto& [field, edit] : cases) {
    FakeWorker fake;
    fake.edit_hello = edit;
    EXPECT_THAT(Connect(fake), StatusIs(absl::StatusCode::kInternal,
                                        AllOf(HasSubstr("makes no sense"), HasSubstr(field))));
    EXPECT_EQ(fake.calls("Session"), 0);
  }
}

TEST(RemoteWorkerTest, Connect_SessionMakesNoSense_Refused) {
  FakeWorker fake;
  fake.edit_session = [](proto::SessionReply& reply) { reply.set_session(0); };
  EXPECT_THAT(Connect(fake),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("number of a session")));
  FakeWorker refusing;
  refusing.EndSession("no room");
  refusing.edit_session = [](proto::SessionReply& reply) { reply.set_session(0); };
  EXPECT_THAT(Connect(refusing), StatusIs(absl::StatusCode::kInternal, HasSubstr("no room")));
}

TEST(RemoteWorkerTest, Connect_HelloFails_StatusComesThrough) {
  FakeWorker fake;
  fake.fail["Hello"] = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full\x01 up");
  EXPECT_THAT(Connect(fake),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full\\x01 up")));
  EXPECT_EQ(fake.calls("Hello"), 1);
}

TEST(RemoteWorkerTest, Ping_Answered_RoundTripIsMeasured) {
  FakeWorker fake;
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  const Clock::TimePoint deadline = SystemClock().Now() + std::chrono::seconds(20);
  while (worker->pings().answered < 3 && SystemClock().Now() < deadline) std::this_thread::yield();
  const PingStatistics pings = worker->pings();
  EXPECT_GE(pings.answered, 3);
  EXPECT_GT(pings.least_us, 0);
  EXPECT_LE(pings.least_us, pings.last_us);
}

TEST(RemoteWorkerTest, Ping_NoAnswer_LostAndEverythingEnds) {
  FakeWorker fake;
  fake.hang["Statistics"] = true;
  RemoteWorkerOptions options = TestWorkerOptions(fake.address());
  options.loss_after = std::chrono::milliseconds(300);
  ASSERT_OK_AND_ASSIGN(const auto worker, RemoteWorker::Connect(options, nullptr));
  LossWatch watch(*worker);
  absl::Status in_progress;
  std::thread caller([&] { in_progress = worker->Statistics().status(); });
  EXPECT_TRUE(fake.AwaitCalls("Statistics", 1));
  fake.StopAnswering();
  const auto lost =
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(worker->label()), HasSubstr("did not answer for 0.3 s")));
  EXPECT_THAT(watch.Await(), lost);
  caller.join();
  EXPECT_THAT(in_progress, lost);
  EXPECT_THAT(worker->lost(), lost);
  EXPECT_EQ(ScopeOf(worker->lost()), ErrorScope::kWorker);
  const int calls = fake.calls("Statistics");
  EXPECT_THAT(worker->Statistics(), lost);
  EXPECT_EQ(fake.calls("Statistics"), calls) << "a lost worker was called";
  LossWatch late(*worker);
  EXPECT_THAT(late.Await(), lost);
  worker->Close();
  EXPECT_THAT(worker->lost(), lost);
  EXPECT_EQ(watch.told(), 1);
}

TEST(RemoteWorkerTest, Session_WorkerEndsIt_LostWithItsWords) {
  FakeWorker fake;
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  LossWatch watch(*worker);
  fake.EndSession("going home");
  EXPECT_THAT(watch.Await(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ended the session: going home")));
}

TEST(RemoteWorkerTest, Session_WrongPing_Lost) {
  FakeWorker fake;
  fake.edit_session = [](proto::SessionReply& reply) {
    if (reply.ping() == 2) reply.set_ping(77);
  };
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  LossWatch watch(*worker);
  EXPECT_THAT(watch.Await(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("answered ping 77")));
}

TEST(RemoteWorkerTest, Session_WorkerDies_CallInProgressIsLostToo) {
  FakeWorker fake;
  fake.hang["Statistics"] = true;
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  LossWatch watch(*worker);
  absl::Status in_progress;
  std::thread caller([&] { in_progress = worker->Statistics().status(); });
  EXPECT_TRUE(fake.AwaitCalls("Statistics", 1));
  fake.Die();
  caller.join();
  EXPECT_THAT(watch.Await(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ended the session")));
  EXPECT_THAT(worker->lost(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(worker->label())));
  EXPECT_FALSE(in_progress.ok());
}

TEST(RemoteWorkerTest, RemoveLossListener_BeforeLoss_NotTold) {
  FakeWorker fake;
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  std::atomic<bool> told = false;
  const int64_t number = worker->AddLossListener([&](const absl::Status&) { told = true; });
  worker->RemoveLossListener(number);
  LossWatch watch(*worker);
  fake.EndSession("bye");
  EXPECT_FALSE(watch.Await().ok());
  EXPECT_FALSE(told);
}

TEST(RemoteWorkerTest, Call_TooSlow_DeadlineExceededAndNotRepeated) {
  FakeWorker fake;
  fake.hang["Statistics"] = true;
  RemoteWorkerOptions options = TestWorkerOptions(fake.address());
  options.call_timeout = std::chrono::milliseconds(60);
  ASSERT_OK_AND_ASSIGN(const auto worker, RemoteWorker::Connect(options, nullptr));
  EXPECT_THAT(worker->Statistics(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                             AllOf(HasSubstr(worker->label()),
                                                   HasSubstr("Statistics"), HasSubstr("0.06 s"))));
  EXPECT_OK(worker->lost());
  EXPECT_EQ(fake.calls("Statistics"), 1);
}

TEST(RemoteWorkerTest, Call_Unavailable_NotRepeated) {
  FakeWorker fake;
  fake.fail["Statistics"] = grpc::Status(grpc::StatusCode::UNAVAILABLE, "later");
  ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
  EXPECT_THAT(worker->Statistics(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("later")));
  EXPECT_EQ(fake.calls("Statistics"), 1);
  EXPECT_OK(worker->lost());
}

TEST(RemoteWorkerTest, Statistics_MakeNoSense_Refused) {
  const std::vector<std::function<void(proto::StatisticsReply&)>> edits = {
      [](auto& reply) { reply.set_steps(-1); },
      [](auto& reply) { reply.set_compute_seconds(std::numeric_limits<double>::quiet_NaN()); },
      [](auto& reply) { reply.mutable_peers(0)->set_transport(std::string(5000, 't')); },
      [](auto& reply) {
        for (int i = 0; i < 5000; ++i) reply.add_peers();
      },
  };
  for (const auto& edit : edits) {
    FakeWorker fake;
    fake.edit_statistics = edit;
    ASSERT_OK_AND_ASSIGN(const auto worker, Connect(fake));
    EXPECT_THAT(worker->Statistics(),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
  }
}

TEST(RemoteWorkerTest, Connect_AfterLoss_NewSession) {
  FakeWorker fake;
  ASSERT_OK_AND_ASSIGN(const auto first, Connect(fake));
  LossWatch watch(*first);
  fake.EndSession("restart");
  EXPECT_FALSE(watch.Await().ok());
  fake.EndSession("");
  ASSERT_OK_AND_ASSIGN(const auto second, Connect(fake));
  EXPECT_OK(second->Statistics());
  EXPECT_FALSE(first->Statistics().ok());
}

}  // namespace
}  // namespace weft
