#include "worker/session/epoch.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/program/program_limits.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/port_edges.h"
#include "rpc_backend/protocol/step_codec.h"

namespace weft {
namespace {

constexpr uint32_t kExecuteKind = static_cast<uint32_t>(MessageKind::kExecute);
constexpr uint32_t kReplyKind = static_cast<uint32_t>(MessageKind::kReply);
constexpr uint32_t kCancelKind = static_cast<uint32_t>(MessageKind::kCancel);

}  // namespace

absl::StatusOr<std::unique_ptr<Epoch>> Epoch::Open(absl::Span<Device* const> devices,
                                                   Transport& transport,
                                                   const EpochOptions& options, Logger& logger) {
  std::unique_ptr<Epoch> epoch(new Epoch(options, logger));
  // Each worker numbers its sessions by itself: the key tells them apart.
  PortOptions port;
  port.epoch = options.epoch;
  port.own_number = options.own_number;
  port.key = options.key;
  port.logger = &logger;
  ASSIGN_OR_RETURN(epoch->port_, transport.NewPort(port));
  if (options.meter != nullptr) options.meter->AddPort(*epoch->port_);
  for (const PortPeer& peer : options.expected) RETURN_IF_ERROR(epoch->port_->Expect(peer));
  epoch->edges_ = std::make_unique<PortEdges>(*epoch->port_, options.epoch);
  epoch->collectives_ =
      std::make_unique<PortEdges>(*epoch->port_, options.epoch, MessageKind::kCollective);
  LocalProgramHostOptions host;
  host.devices.assign(devices.begin(), devices.end());
  host.logger = &logger;
  host.edges = epoch->edges_.get();
  host.collectives = epoch->collectives_.get();
  if (options.meter != nullptr) host.meter = &options.meter->collectives();
  host.on_finished = [raw = epoch.get()](int64_t step) { raw->Reply(step); };
  ASSIGN_OR_RETURN(epoch->host_, LocalProgramHost::Create(std::move(host)));
  ASSIGN_OR_RETURN(epoch->thread_, StartThread([raw = epoch.get()] { raw->Run(); }));
  return epoch;
}

Epoch::~Epoch() {
  stop_.store(true);
  if (port_ != nullptr) port_->Abort(absl::CancelledError("the epoch has ended"));
  if (thread_.joinable()) thread_.join();
  // Steps that end now still come to Reply, which needs the host: reset() alone would hide it.
  if (host_ != nullptr) host_->Stop();
  host_.reset();
  if (options_.meter != nullptr && port_ != nullptr) options_.meter->RemovePort(*port_);
}

absl::StatusOr<ProgramId> Epoch::Install(Program program) {
  // Whoever sends programs has set up all connections.
  if (port_->AwaitPeers(clock_.Now()).ok()) port_->StopListening();
  ASSIGN_OR_RETURN(const ProgramId id, host_->Install(std::move(program)));
  if (options_.meter != nullptr) options_.meter->CountProgram();
  MutexLock lock(mutex_);
  ++counters_.programs;
  return id;
}

EpochCounters Epoch::counters() {
  MutexLock lock(mutex_);
  return counters_;
}

void Epoch::Run() {
  MessageFilter filter;
  filter.kinds = KindBit(kExecuteKind) | KindBit(kCancelKind);
  filter.peer = options_.coordinator_number;
  filter.patient = true;
  while (!stop_.load()) {
    absl::StatusOr<Message> message = port_->Receive(filter, Clock::TimePoint::max(), &stop_);
    if (!message.ok()) {
      // A peer is gone or the epoch ends: nothing that runs here can finish.
      port_->Abort(message.status());
      return;
    }
    Handle(*std::move(message));
  }
}

void Epoch::Handle(Message message) {
  if (message.header.kind == kCancelKind) {
    (void)host_->Cancel(message.header.step);
    return;
  }
  const int64_t step = message.header.step;
  if (step < next_step_ || static_cast<int>(early_.size()) >= kMaxStepsInFlight) {
    ReplyError(step, absl::InvalidArgumentError(
                         absl::StrCat("step ", step, " is not ahead: ", next_step_, " is next")));
    return;
  }
  early_.emplace(step, std::move(message.payload));
  for (auto at = early_.find(next_step_); at != early_.end(); at = early_.find(next_step_)) {
    HandleExecute(next_step_++, at->second);
    early_.erase(at);
  }
}

void Epoch::HandleExecute(int64_t step, const Payload& payload) {
  {
    MutexLock lock(mutex_);
    arrived_[step] = clock_.Now();
  }
  StepRequest request;
  absl::Status status = broken_;
  if (status.ok() && options_.weights_status) status = options_.weights_status();
  if (status.ok()) status = DecodeStepRequest(payload, WireLimits(), request);
  if (status.ok()) {
    request.input.step = step;
    if (request.deadline_ms > 0) {
      request.input.deadline = clock_.Now() + std::chrono::milliseconds(request.deadline_ms);
    }
    status = host_->Launch(request.instance, request.input);
  }
  if (status.ok()) return;
  // The updates of its page tables are missing: what follows would compute with wrong ones.
  if (broken_.ok()) {
    logger_.Warning(StdView(absl::StrCat("step ", step, " was refused: ", status.message())));
    broken_ = absl::Status(status.code(),
                           absl::StrCat("step ", step, " was refused: ", status.message()));
  }
  ReplyError(step, status);
}

void Epoch::Reply(int64_t step) {
  absl::StatusOr<StepOutput> output = host_->Await(step, clock_.Now());
  StepReply reply;
  reply.status = output.status();
  if (output.ok()) reply.output = *std::move(output);
  {
    MutexLock lock(mutex_);
    ++counters_.steps;
    counters_.compute_seconds += reply.output.compute_seconds;
    counters_.wait_seconds += reply.output.wait_seconds;
  }
  Send(step, reply);
  NoteEnd(step, reply);
}

void Epoch::NoteEnd(int64_t step, const StepReply& reply) {
  double seconds = 0;
  {
    MutexLock lock(mutex_);
    const auto arrived = arrived_.find(step);
    if (arrived == arrived_.end()) return;
    seconds = SecondsSince(clock_, arrived->second);
    arrived_.erase(arrived);
  }
  if (options_.meter == nullptr) return;
  options_.meter->CountStep(reply.status.ok(), seconds, reply.output);
}

void Epoch::ReplyError(int64_t step, const absl::Status& status) {
  StepReply reply;
  reply.status = status;
  Send(step, reply);
  NoteEnd(step, reply);
}

void Epoch::Send(int64_t step, const StepReply& reply) {
  const MessageHeader header{options_.epoch, kReplyKind, step, 0};
  StepMessage message;
  message.Encode(reply);
  const absl::Status sent = port_->Send(options_.coordinator_number, header, message.parts());
  if (!sent.ok()) port_->Abort(sent);
  // The thread that waits for the next step shall look for it from now on.
  port_->Wake();
}

}  // namespace weft
