// A message port over UCX: up to two workers, one per mode, an inbox, and whoever waits.
//
// No thread of its own. Of the threads that wait in the port one drives the workers: it lets them
// progress for at most 50 us, yielding the processor, and then sleeps on their event descriptors.
// The others sleep on condition variables, and one takes over when the driver leaves. The mutex is
// free while the driver yields or sleeps, so senders come in at any time.
//
// A patient waiter (MessageFilter::patient) that drives is asleep, and whoever else comes takes the
// driving from it without waking it: so a thread that exchanges messages with its partners does not
// pay for one that waits for the next step. The patient one takes it back when nobody has come for
// a few milliseconds, or when it is woken.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "common/base/mutex.h"
#include "common/base/refusal_log.h"
#include "common/transport/inbox.h"
#include "common/transport/strangers.h"
#include "common/transport/ucx/ucx_worker.h"

namespace weft {

class UcxPort final : public MessagePort, private UcxWorkerEvents {
 public:
  // Where and how a port listens; empty contexts are not used.
  struct Setup {
    std::shared_ptr<UcxContext> local;  // shared by all ports of a transport, as is remote
    std::shared_ptr<UcxContext> remote;
    std::vector<SocketAddress> local_addresses;   // the first free one
    std::vector<SocketAddress> remote_addresses;  // likewise
    SocketAddress announced;                      // for remote; its port is filled in
    std::string host_identity;
  };
  static absl::StatusOr<std::unique_ptr<UcxPort>> Create(const Setup& setup,
                                                         const PortOptions& options);
  ~UcxPort() override;

  const std::string& address() const override { return address_; }
  absl::Status Expect(const PortPeer& peer) override;
  absl::Status Connect(const PortPeer& peer, std::string_view address,
                       Clock::TimePoint deadline) override;
  absl::Status AwaitPeers(Clock::TimePoint deadline) override;
  void StopListening() override;
  absl::Status Send(int32_t peer, const MessageHeader& header,
                    absl::Span<const absl::Span<const uint8_t>> parts) override;
  absl::StatusOr<Message> Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                  const std::atomic<bool>* stop) override;
  void Recycle(Payload&& payload) override { pool_.Give(std::move(payload)); }
  void Progress() override;
  void Wake() override;
  void Abort(absl::Status reason) override;
  absl::Status failure() override;
  std::vector<PeerTraffic> traffic() override;

 private:
  // The connection of a peer.
  struct Link {
    UcxConnection* connection = nullptr;  // null once it is closed
    bool answered = false;                // both sides have proved themselves
    absl::Status failed;                  // why there will be no answer
  };

  UcxPort(const PortOptions& options, std::string host_identity)
      : options_(options),
        host_identity_(std::move(host_identity)),
        pool_(options.limits.pooled_bytes),
        inbox_(options),
        refusals_(options.logger, clock_, "a data connection") {}
  absl::Status Start(const Setup& setup);
  // The worker and the socket address by which `address` can be reached.
  struct Route {
    UcxWorker* worker = nullptr;
    SocketAddress address;
  };
  absl::StatusOr<Route> ChooseRoute(const PortAddress& address) const;
  absl::Status StartConnect(const PortPeer& peer, const Route& route, std::string_view address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Waits until `done`, which is asked with the mutex held. False if the deadline came first.
  bool Await(Inbox::Waiter& waiter, Clock::TimePoint deadline, absl::FunctionRef<bool()> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the driving and gives it up again, unless somebody takes it from this thread meanwhile.
  void TakeTurn(bool patient, Clock::TimePoint deadline, absl::FunctionRef<bool()> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns when done, at the deadline, or when `turn` is over.
  void Drive(uint64_t turn, bool patient, Clock::TimePoint deadline, absl::FunctionRef<bool()> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Not armed: for a moment, whatever arrives.
  void Sleep(uint64_t turn, bool armed, Clock::TimePoint deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a patient waiter does while others drive. False at the deadline.
  bool StandAside(Inbox::Waiter& waiter, int64_t& visits, Clock::TimePoint deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool driver_sleeps() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return driving_ && sleeping_turn_ == turn_;
  }
  bool ProgressWorkers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ArmWorkers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FetchWanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After something was handed to UCX: whoever drives must look, or this thread does.
  void Nudge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDriver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Also those whose turn was taken from them in their sleep.
  void WakeSleepers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer that says hello, if it is one that may connect now; else null.
  const PortPeer* Admit(const Hello& hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Challenge> MakeChallenge(const Hello& hello, const PortPeer& peer,
                                          UcxConnection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnChallenge(UcxConnection& connection, absl::Span<const uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a challenge of the side that this one connected to; answers it.
  absl::Status AnswerChallenge(UcxConnection& connection, absl::Span<const uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnProof(UcxConnection& connection, absl::Span<const uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRefusal(UcxConnection& connection, absl::Span<const uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells an accepted connection why it will end soon.
  void Refuse(UcxConnection& connection, Refusal why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The link of a connection that this side began and the other has not proved yet; else null.
  Link* FindPending(const UcxConnection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Called by the workers, so with the mutex held.
  void OnHello(UcxConnection& connection, absl::Span<const uint8_t> bytes) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnControl(UcxConnection& connection, unsigned id, absl::Span<const uint8_t> bytes) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnIntrusion(UcxConnection& connection) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDrop(UcxConnection& connection, Refusal why) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(UcxConnection& connection, absl::Span<const uint8_t> encoded,
                 Payload payload) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<int64_t> OnOffer(UcxConnection& connection, absl::Span<const uint8_t> encoded,
                                 int64_t bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFetched(int64_t ticket, Payload payload) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFetchFailed(int64_t ticket, const absl::Status& why) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSent(UcxConnection& connection) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnLost(UcxConnection& connection, const absl::Status& why) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PortOptions options_;
  const std::string host_identity_;
  const SystemClock clock_;
  std::string address_;
  AddressDigest address_digest_ = {};
  int wake_descriptor_ = -1;
  PayloadPool pool_;

  Mutex mutex_;
  Inbox inbox_ ABSL_GUARDED_BY(mutex_);
  RefusalLog refusals_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Link> links_ ABSL_GUARDED_BY(mutex_);
  bool driving_ ABSL_GUARDED_BY(mutex_) = false;
  int waits_without_polling_ ABSL_GUARDED_BY(mutex_) = 0;  // see kCrowdedYield
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;              // of the last driver, counted
  uint64_t sleeping_turn_ ABSL_GUARDED_BY(mutex_) = 0;  // who sleeps on the descriptors; 0: nobody
  int sleepers_ ABSL_GUARDED_BY(mutex_) = 0;            // on the descriptors
  bool patient_drives_ ABSL_GUARDED_BY(mutex_) = false;
  bool recalled_ ABSL_GUARDED_BY(mutex_) = false;  // a patient waiter shall take the driving back
  int64_t visits_ ABSL_GUARDED_BY(mutex_) = 0;     // waits that were not patient
  int64_t send_waiters_ ABSL_GUARDED_BY(mutex_) = 0;
  // Pointers are set once in Start; what they point to is guarded by the mutex. Last, so that they
  // end first.
  std::unique_ptr<UcxWorker> local_;
  std::unique_ptr<UcxWorker> remote_;
  std::vector<UcxWorker*> workers_;
};

}  // namespace weft
