// One ucp_worker of a port: its listener, its connections, and what is on its way over them. It
// knows no keys and no peers; the port does.
//
// Not thread-safe: the port's mutex guards it. Nothing here waits. Events are reported from within
// Progress, after UCX returned, so that the port may call back into the worker.
#pragma once

#include <ucp/api/ucp.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/transport/payload_pool.h"
#include "common/transport/ucx/port_address.h"
#include "common/transport/ucx/ucx_context.h"
#include "common/transport/ucx/ucx_wire.h"

namespace weft {

class UcxWorker;

// Made and owned by a UcxWorker; valid until Close.
struct UcxConnection {
  UcxWorker* worker = nullptr;
  ucp_ep_h endpoint = nullptr;
  bool accepted = false;       // the other side connected
  bool heard = false;          // a message came over it, so UCX has finished connecting
  bool failed = false;         // UCX reported its end, once
  bool proven = false;         // both sides proved the session's key (SetProven)
  bool greeted = false;        // a hello came
  bool refused = false;        // the port does not want it; it ends soon
  bool abandoned = false;      // refused, and UCX cannot let go of it
  int32_t peer = -1;           // for the port; -1 while nobody's
  int64_t outgoing_bytes = 0;  // of sends that are not complete
  std::string from;            // the socket address of who connected
  Clock::TimePoint end;        // of one that was accepted and is not proven
  std::unique_ptr<PeerHandshake> handshake;  // for the port, until it is proven
};

// What a worker tells its port. Pointers to connections stay valid during the call at least.
class UcxWorkerEvents {
 public:
  virtual ~UcxWorkerEvents() = default;
  // The first message of an accepted connection that calls itself a hello.
  virtual void OnHello(UcxConnection& connection, absl::Span<const uint8_t> hello) = 0;
  // A challenge, proof or refusal. Called from inside UCX, so that messages behind it find what it
  // says.
  virtual void OnControl(UcxConnection& connection, unsigned id,
                         absl::Span<const uint8_t> bytes) = 0;
  // Something else came over a connection that is not proven; called from inside UCX.
  virtual void OnIntrusion(UcxConnection& connection) = 0;
  // A connection that is not proven ends in a moment, for this reason.
  virtual void OnDrop(UcxConnection& connection, Refusal why) = 0;
  // A small message of a proven connection; called from inside UCX: only to store it.
  virtual void OnMessage(UcxConnection& connection, absl::Span<const uint8_t> header,
                         Payload payload) = 0;
  // A large message that the sender holds; called from inside UCX. Returns a ticket by which the
  // port will Fetch or Release it, or nothing if it does not want it.
  virtual std::optional<int64_t> OnOffer(UcxConnection& connection,
                                         absl::Span<const uint8_t> header, int64_t bytes) = 0;
  virtual void OnFetched(int64_t ticket, Payload payload) = 0;
  virtual void OnFetchFailed(int64_t ticket, const absl::Status& why) = 0;
  // Some bytes of the connection's outgoing_bytes are gone.
  virtual void OnSent(UcxConnection& connection) = 0;
  // The connection failed or the other side ended it. It is not closed yet.
  virtual void OnLost(UcxConnection& connection, const absl::Status& why) = 0;
};

class UcxWorker {
 public:
  // Listens at the first free address of `listen_at`. Events and pool outlive it.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      std::shared_ptr<UcxContext> context, const std::vector<SocketAddress>& listen_at,
      UcxWorkerEvents& events, PayloadPool& pool);
  // Does not wait for the other sides; what was not read by them may be lost.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  const SocketAddress& listen_address() const { return listen_address_; }
  // Nobody connects any more. UCX 1.13 ends the process when a stranger sends it the wrong bytes
  // there, so it listens no longer than it must.
  void StopListening();
  int event_descriptor() const { return event_descriptor_; }
  UcxMode mode() const { return context_->mode(); }

  // Lets UCX work until it has nothing to do, or for a bounded number of rounds, and reports
  // events. Returns whether anything happened.
  bool Progress();
  // Prepares event_descriptor to become readable with the next event. False if there is work now.
  bool Arm();
  // Sends that UCX has not finished.
  int64_t sends_pending() const { return static_cast<int64_t>(sends_.size()); }

  // Begins to connect; UCX tells the outcome by OnLost, or by letting messages through.
  absl::StatusOr<UcxConnection*> Connect(const SocketAddress& address);
  // Both sides have proved themselves: from now on messages are taken.
  void SetProven(UcxConnection& connection);
  // Queues a small control message.
  absl::Status SendControl(UcxConnection& connection, unsigned id, absl::Span<const uint8_t> bytes);
  absl::Status SendData(UcxConnection& connection, const MessageHeader& header, Payload payload);
  // Fetches an offered message into memory of `bytes`.
  void Fetch(int64_t ticket, int64_t bytes);
  // Ends a connection, as politely as its mode allows, and forgets it.
  void Close(UcxConnection& connection);
  // Asks UCX to push out what was sent; flushes_pending() tells how many connections have not yet.
  void StartFlush();
  int64_t flushes_pending() const { return flushes_pending_; }
  // The transports that carry a connection: "posix+cma", "tcp".
  static std::string TransportNames(const UcxConnection& connection);

 private:
  struct Outgoing;
  struct Incoming;
  struct Deferred;

  UcxWorker(std::shared_ptr<UcxContext> context, UcxWorkerEvents& events, PayloadPool& pool);
  absl::Status Start(const std::vector<SocketAddress>& listen_at);
  absl::Status Listen(const std::vector<SocketAddress>& listen_at);
  absl::Status SetHandler(unsigned id, ucp_am_recv_callback_t callback);
  void Accept(ucp_conn_request_h request);
  // Makes room for one more connection from somebody who has not said who it is; false if there is
  // none.
  bool LimitStrangers();
  // Ends those whose time is over.
  void EndStrangers();
  absl::StatusOr<UcxConnection*> AddConnection(ucp_ep_params_t& params);
  absl::Status Post(std::unique_ptr<Outgoing> send, uint32_t flags);
  void Finish(Outgoing& send, ucs_status_t status);
  UcxConnection* Find(const ucp_am_recv_param_t* param);
  bool Report();

  static void OnConnectionRequest(ucp_conn_request_h request, void* self);
  static void OnError(void* connection, ucp_ep_h endpoint, ucs_status_t status);
  static ucs_status_t OnHelloMessage(void* self, const void* header, size_t header_bytes,
                                     void* data, size_t bytes, const ucp_am_recv_param_t* param);
  template <unsigned kId>
  static ucs_status_t OnControlMessage(void* self, const void* header, size_t header_bytes,
                                       void* data, size_t bytes, const ucp_am_recv_param_t* param);
  static ucs_status_t OnDataMessage(void* self, const void* header, size_t header_bytes, void* data,
                                    size_t bytes, const ucp_am_recv_param_t* param);
  static void OnSendDone(void* request, ucs_status_t status, void* send);
  // Whether ucp_worker_destroy would end the process, for what is still on its way.
  bool MustNotDestroy();
  static void OnCloseDone(void* request, ucs_status_t status, void* self);
  static void OnFlushDone(void* request, ucs_status_t status, void* self);
  static void OnFetchDone(void* request, ucs_status_t status, size_t bytes, void* fetch);

  std::shared_ptr<UcxContext> context_;  // shared by all ports of a transport
  UcxWorkerEvents& events_;
  PayloadPool& pool_;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  SocketAddress listen_address_;
  int event_descriptor_ = -1;
  std::list<std::unique_ptr<UcxConnection>> connections_;
  std::map<ucp_ep_h, UcxConnection*> by_endpoint_;
  // What UCX still reads and writes: freed when it is done, or with the worker.
  std::list<std::unique_ptr<Outgoing>> sends_;
  std::list<std::unique_ptr<Incoming>> fetches_;
  std::map<int64_t, void*> offers_;  // UCX's descriptors by ticket
  std::deque<Deferred> deferred_;
  const SystemClock clock_;
  int64_t unproven_ = 0;           // accepted, and neither proven nor abandoned
  Clock::TimePoint next_check_{};  // of their time
  int64_t flushes_pending_ = 0;
  int64_t closes_pending_ = 0;
};

}  // namespace weft
