#include "common/transport/ucx/ucx_port.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How long a driver polls before it sleeps. Longer costs others their processor.
constexpr microseconds kPollTime{50};
// A yield that takes longer gave the processor to somebody who computes: then waits sleep at once,
// since a sleeper is woken before such a task's time is over and one that yields is not. After so
// many waits polling is tried again.
constexpr microseconds kCrowdedYield{100};
constexpr int kWaitsWithoutPolling = 256;
// How long it sleeps at most: while UCX has unfinished sends, some transports give no event when
// they can go on; and otherwise only as a guard.
constexpr milliseconds kSleepWhileSending{1};
constexpr milliseconds kSleep{200};
// Where arming fails something has arrived, which the next look mostly takes. A peer that is
// stopped in the midst of a message leaves it so: after so many in a row a driver sleeps unarmed.
constexpr int kArmsInVain = 64;
constexpr milliseconds kNap{1};
// How long a patient waiter leaves the driving to others that came meanwhile.
constexpr milliseconds kStandAside{2};
// How long the end of a port waits for the last messages to leave.
constexpr milliseconds kFlushTime{50};

}  // namespace

absl::StatusOr<std::unique_ptr<UcxPort>> UcxPort::Create(const Setup& setup,
                                                         const PortOptions& options) {
  auto port = absl::WrapUnique(new UcxPort(options, setup.host_identity));
  RETURN_IF_ERROR(port->Start(setup));
  return port;
}

absl::Status UcxPort::Start(const Setup& setup) {
  wake_descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_descriptor_ < 0) return absl::ResourceExhaustedError("no descriptor for a message port");
  PortAddress address;
  address.host_identity = host_identity_;
  if (setup.local != nullptr) {
    ASSIGN_OR_RETURN(local_, UcxWorker::Create(setup.local, setup.local_addresses, *this, pool_));
    address.local = SocketAddressText(local_->listen_address());
    workers_.push_back(local_.get());
  }
  if (setup.remote != nullptr) {
    ASSIGN_OR_RETURN(remote_,
                     UcxWorker::Create(setup.remote, setup.remote_addresses, *this, pool_));
    SocketAddress announced = setup.announced;
    SetPort(announced, PortOf(remote_->listen_address()));
    address.remote = SocketAddressText(announced);
    workers_.push_back(remote_.get());
  }
  address_ = PortAddressText(address);
  address_digest_ = DigestOfAddress(address_);
  return absl::OkStatus();
}

UcxPort::~UcxPort() {
  {
    MutexLock lock(mutex_);
    const Clock::TimePoint deadline = clock_.Now() + kFlushTime;
    const auto pending = [this] {
      return std::any_of(workers_.begin(), workers_.end(),
                         [](const UcxWorker* worker) { return worker->flushes_pending() > 0; });
    };
    if (inbox_.aborted().ok()) {
      for (UcxWorker* worker : workers_) worker->StartFlush();
    }
    while (pending() && clock_.Now() < deadline) {
      if (!ProgressWorkers()) sched_yield();
    }
  }
  remote_.reset();
  local_.reset();
  if (wake_descriptor_ >= 0) close(wake_descriptor_);
}

// --- waiting -----------------------------------------------------------------------------------

bool UcxPort::Await(Inbox::Waiter& waiter, Clock::TimePoint deadline,
                    absl::FunctionRef<bool()> done) {
  const bool patient = waiter.filter.patient;
  int64_t visits = visits_;
  if (!patient) ++visits_;
  inbox_.Enter(waiter);
  FetchWanted();
  bool finished = done();
  bool in_time = true;
  while (!finished && in_time) {
    if (!driving_ || (!patient && patient_drives_ && driver_sleeps())) {
      if (patient && visits != visits_ && !recalled_) {
        in_time = StandAside(waiter, visits, deadline);
      } else {
        TakeTurn(patient, deadline, done);
        in_time = clock_.Now() < deadline;
      }
    } else if (patient) {
      in_time = StandAside(waiter, visits, deadline);
    } else {
      in_time = waiter.changed.WaitUntil(mutex_, deadline);
    }
    finished = done();
  }
  inbox_.Leave(waiter);
  FetchWanted();
  if (!driving_) {
    // With messages on their way out somebody has to look after them.
    for (const UcxWorker* worker : workers_) recalled_ = recalled_ || worker->sends_pending() > 0;
    inbox_.WakeAnother(nullptr, /*patient_too=*/recalled_);
  }
  return finished;
}

bool UcxPort::StandAside(Inbox::Waiter& waiter, int64_t& visits, Clock::TimePoint deadline) {
  visits = visits_;
  const Clock::TimePoint look = clock_.Now() + kStandAside;
  if (waiter.changed.WaitUntil(mutex_, std::min(look, deadline))) return true;
  return clock_.Now() < deadline;
}

void UcxPort::TakeTurn(bool patient, Clock::TimePoint deadline, absl::FunctionRef<bool()> done) {
  const uint64_t turn = ++turn_;
  driving_ = true;
  patient_drives_ = patient;
  if (patient) recalled_ = false;
  Drive(turn, patient, deadline, done);
  if (turn == turn_) driving_ = false;
}

void UcxPort::Drive(uint64_t turn, bool patient, Clock::TimePoint deadline,
                    absl::FunctionRef<bool()> done) {
  Clock::TimePoint start = clock_.Now();
  int in_vain = 0;  // arms that failed, one after the other, and nothing had arrived
  bool polls = !patient && waits_without_polling_ == 0;
  if (!patient && !polls) --waits_without_polling_;
  while (turn == turn_) {
    const bool any = ProgressWorkers();
    if (done()) return;
    const Clock::TimePoint now = clock_.Now();
    if (now >= deadline) return;
    if (any) start = now;
    if (polls && now - start < kPollTime) {
      mutex_.Unlock();
      sched_yield();
      const bool crowded = clock_.Now() - now > kCrowdedYield;
      mutex_.Lock();
      if (crowded) {
        polls = false;
        waits_without_polling_ = kWaitsWithoutPolling;
      }
      continue;
    }
    // Nothing can arrive between a successful arming and the sleep without an event; what others
    // did while the mutex was free is in `done`.
    const bool armed = ArmWorkers();
    in_vain = armed || any ? 0 : in_vain + 1;
    if (!armed && in_vain < kArmsInVain) {
      start = now;
      continue;
    }
    if (done()) return;
    Sleep(turn, armed, deadline);
    start = clock_.Now();
  }
}

void UcxPort::Sleep(uint64_t turn, bool armed, Clock::TimePoint deadline) {
  std::vector<pollfd> descriptors = {{.fd = wake_descriptor_, .events = POLLIN, .revents = 0}};
  bool sending = false;
  for (const UcxWorker* worker : workers_) {
    // What is not armed has events already.
    if (armed) {
      descriptors.push_back({.fd = worker->event_descriptor(), .events = POLLIN, .revents = 0});
    }
    sending = sending || worker->sends_pending() > 0;
  }
  const auto longest = std::chrono::nanoseconds(!armed    ? kNap
                                                : sending ? kSleepWhileSending
                                                          : kSleep);
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - clock_.Now());
  const int64_t nanoseconds = std::clamp<int64_t>(left.count(), 0, longest.count());
  const timespec timeout = {.tv_sec = nanoseconds / 1000000000,
                            .tv_nsec = nanoseconds % 1000000000};
  sleeping_turn_ = turn;
  ++sleepers_;
  mutex_.Unlock();
  (void)ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
  mutex_.Lock();
  --sleepers_;
  if (sleeping_turn_ == turn) sleeping_turn_ = 0;
  // Whose turn is over leaves the event to the one who drives now.
  if (turn == turn_ && (descriptors[0].revents & POLLIN) != 0) {
    uint64_t ignored = 0;
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): the descriptor does not block
    (void)!read(wake_descriptor_, &ignored, sizeof ignored);
  }
}

bool UcxPort::ProgressWorkers() {
  bool any = false;
  for (UcxWorker* worker : workers_) any = worker->Progress() || any;
  FetchWanted();
  return any;
}

bool UcxPort::ArmWorkers() {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](UcxWorker* worker) { return worker->Arm(); });
}

void UcxPort::FetchWanted() {
  bool any = false;
  while (const std::optional<Inbox::Wanted> wanted = inbox_.NextWanted()) {
    any = true;
    for (UcxWorker* worker : workers_) worker->Fetch(wanted->ticket, wanted->bytes);
  }
  if (any) WakeDriver();
}

void UcxPort::WakeDriver() {
  if (driver_sleeps()) WakeSleepers();
}

void UcxPort::WakeSleepers() {
  if (sleepers_ == 0) return;
  const uint64_t one = 1;
  (void)!write(wake_descriptor_, &one, sizeof one);
}

void UcxPort::Nudge() {
  if (driving_) {
    WakeDriver();
  } else {
    (void)ProgressWorkers();
  }
}

void UcxPort::Progress() {
  MutexLock lock(mutex_);
  if (!driving_) (void)ProgressWorkers();
}

void UcxPort::Wake() {
  MutexLock lock(mutex_);
  recalled_ = true;
  inbox_.WakeAll();
  WakeSleepers();
}

void UcxPort::Abort(absl::Status reason) {
  MutexLock lock(mutex_);
  inbox_.Abort(std::move(reason));
  WakeSleepers();
}

// --- messages ----------------------------------------------------------------------------------

absl::Status UcxPort::Send(int32_t peer, const MessageHeader& header,
                           absl::Span<const absl::Span<const uint8_t>> parts) {
  int64_t bytes = 0;
  for (const absl::Span<const uint8_t> part : parts) bytes += static_cast<int64_t>(part.size());
  if (bytes > options_.limits.max_message_bytes) return inbox_.TooLarge(bytes);
  // Copied before the mutex is taken: others need not wait for it.
  Payload payload = pool_.Take(bytes);
  uint8_t* place = payload.data();
  for (const absl::Span<const uint8_t> part : parts) {
    place = std::copy(part.begin(), part.end(), place);
  }
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(inbox_.CheckOutgoing(peer, header, bytes));
  const PortLimits& limits = options_.limits;
  const auto has_room = [&] {
    const UcxConnection* connection = links_[peer].connection;
    return connection == nullptr || connection->outgoing_bytes == 0 ||
           connection->outgoing_bytes + bytes <= limits.outgoing_bytes_per_peer;
  };
  if (!has_room()) {
    Inbox::Waiter waiter({.kinds = 0});
    ++send_waiters_;
    const bool in_time = Await(waiter, clock_.Now() + limits.send_timeout,
                               [&] { return !inbox_.CheckPeer(peer).ok() || has_room(); });
    --send_waiters_;
    RETURN_IF_ERROR(inbox_.CheckPeer(peer));
    if (!in_time) return inbox_.SendTimedOut(peer, header);
  }
  UcxConnection* connection = links_[peer].connection;
  if (connection == nullptr) return absl::InternalError("a connected peer has no connection");
  inbox_.CountSent(peer, header.kind, bytes);
  const absl::Status status = connection->worker->SendData(*connection, header, std::move(payload));
  if (!status.ok()) inbox_.LosePeer(peer, status);
  if (connection->worker->sends_pending() > 0) Nudge();
  return inbox_.CheckPeer(peer);
}

absl::StatusOr<Message> UcxPort::Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                         const std::atomic<bool>* stop) {
  MutexLock lock(mutex_);
  Inbox::Waiter waiter(filter, stop);
  std::optional<absl::StatusOr<Message>> result;
  Await(waiter, deadline, [&] {
    if (!result.has_value()) result = inbox_.Poll(waiter);
    return result.has_value();
  });
  return result.has_value() ? *std::move(result) : inbox_.TimedOut(filter);
}

absl::Status UcxPort::failure() {
  MutexLock lock(mutex_);
  return inbox_.failure();
}

std::vector<PeerTraffic> UcxPort::traffic() {
  MutexLock lock(mutex_);
  return inbox_.traffic();
}

void UcxPort::OnMessage(UcxConnection& connection, absl::Span<const uint8_t> encoded,
                        Payload payload) {
  const std::optional<MessageHeader> header = DecodeDataHeader(encoded);
  if (!header.has_value()) {
    inbox_.Abort(absl::InvalidArgumentError(
        absl::StrCat(inbox_.PeerText(connection.peer), " sent a message without a header")));
    return;
  }
  inbox_.Store({.peer = connection.peer, .header = *header, .payload = std::move(payload)});
}

std::optional<int64_t> UcxPort::OnOffer(UcxConnection& connection,
                                        absl::Span<const uint8_t> encoded, int64_t bytes) {
  const std::optional<MessageHeader> header = DecodeDataHeader(encoded);
  if (!header.has_value()) {
    inbox_.Abort(absl::InvalidArgumentError(
        absl::StrCat(inbox_.PeerText(connection.peer), " offered a message without a header")));
    return std::nullopt;
  }
  return inbox_.Offer(connection.peer, *header, bytes);
}

void UcxPort::OnFetched(int64_t ticket, Payload payload) {
  inbox_.Fetched(ticket, std::move(payload));
}

void UcxPort::OnFetchFailed(int64_t ticket, const absl::Status& why) {
  inbox_.FetchFailed(ticket, why);
}

void UcxPort::OnSent(UcxConnection& /*connection*/) {
  if (send_waiters_ > 0) inbox_.WakeAll();
}

}  // namespace weft
