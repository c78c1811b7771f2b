#include "rpc_backend/client/remote_program_host.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/program/program_store.h"
#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/program_codec.h"
#include "rpc_backend/protocol/step_codec.h"

namespace weft {
namespace {

constexpr std::string_view kExecuteVerb = "Execute";

uint32_t KindOf(MessageKind kind) { return static_cast<uint32_t>(kind); }

std::vector<int64_t> OutputBytes(const Program& program) {
  std::vector<int64_t> bytes;
  for (const ProgramOutput& output : program.outputs) {
    const TensorLayout& layout = program.graph.layout(output.node);
    bytes.push_back(RowByteSize(layout) * RowCount(layout));
  }
  return bytes;
}

// 0 where there is none.
int64_t DeadlineMs(Clock::TimePoint deadline, Clock::TimePoint now, const WireLimits& limits) {
  if (deadline == Clock::TimePoint::max()) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return std::clamp<int64_t>(left, 1, limits.timeout_ms);
}

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

}  // namespace

class RemoteProgramHost::Impl {
 public:
  explicit Impl(const RemoteProgramHostOptions& options)
      : options_(options),
        connection_(options.worker->connection()),
        programs_(connection_.limits().program.programs) {}

  absl::StatusOr<ProgramId> Install(Program program);
  absl::StatusOr<InstanceId> Instantiate(ProgramId program, absl::Span<const SlotBinding> bindings);
  absl::Status Release(InstanceId instance);
  absl::Status Launch(InstanceId instance, const StepInput& input);
  absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline);
  absl::Status Cancel(int64_t step);
  HostCounters counters() {
    MutexLock lock(mutex_);
    return counters_;
  }
  RemoteHostCounters remote_counters() {
    MutexLock lock(mutex_);
    return remote_;
  }

 private:
  struct Instance {
    ProgramId program{};
    std::vector<int64_t> output_bytes;
  };
  struct Launched {
    std::vector<int64_t> output_bytes;
    Clock::TimePoint at;
  };

  // Sends a stored program and notes what the worker calls it.
  absl::Status SendProgram(ProgramId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(program_mutex_);
  absl::StatusOr<proto::InstantiateReply> CallInstantiate(proto::InstantiateRequest& request,
                                                          ProgramId program)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(program_mutex_);
  absl::Status Send(MessageKind kind, int64_t step,
                    absl::Span<const absl::Span<const uint8_t>> parts);
  absl::Status Explain(const absl::Status& error);
  absl::Status CheckReply(const StepReply& reply, const Launched& launched) const;

  const RemoteProgramHostOptions options_;
  WorkerConnection& connection_;

  Mutex program_mutex_;  // held during calls, so that a program is sent once
  ProgramStore programs_ ABSL_GUARDED_BY(program_mutex_);
  std::map<ProgramId, int64_t> sent_ ABSL_GUARDED_BY(program_mutex_);  // to the worker's number

  Mutex send_mutex_;  // steps leave in the order of Launch
  StepMessage request_ ABSL_GUARDED_BY(send_mutex_);

  Mutex mutex_;
  std::map<InstanceId, Instance> instances_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Launched> launched_ ABSL_GUARDED_BY(mutex_);
  HostCounters counters_ ABSL_GUARDED_BY(mutex_);
  RemoteHostCounters remote_ ABSL_GUARDED_BY(mutex_);
};

// --- programs ---

absl::Status RemoteProgramHost::Impl::SendProgram(ProgramId id) {
  proto::InstallProgramRequest request;
  proto::InstallProgramReply reply;
  request.set_program(EncodeProgram(*programs_.Find(id)));
  request.set_sha256(ContentDigest(request.program()));
  const auto bytes = static_cast<int64_t>(request.program().size());
  if (bytes > connection_.limits().embedded_message_bytes) {
    return connection_.Error(absl::StatusCode::kResourceExhausted, "InstallProgram",
                             absl::StrCat("a program of ", bytes, " bytes is too large to send"));
  }
  RETURN_IF_ERROR(
      connection_.Invoke("InstallProgram", &proto::Worker::Stub::InstallProgram, request, reply));
  sent_[id] = reply.program();
  MutexLock lock(mutex_);
  ++remote_.program_sends;
  return absl::OkStatus();
}

absl::StatusOr<ProgramId> RemoteProgramHost::Impl::Install(Program program) {
  MutexLock lock(program_mutex_);
  ASSIGN_OR_RETURN(const ProgramId id, programs_.Add(std::move(program)));
  std::erase_if(sent_, [this](const auto& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return programs_.Find(entry.first) == nullptr;
  });
  if (!sent_.contains(id)) RETURN_IF_ERROR(SendProgram(id));
  return id;
}

absl::StatusOr<proto::InstantiateReply> RemoteProgramHost::Impl::CallInstantiate(
    proto::InstantiateRequest& request, ProgramId program) {
  // The worker may have dropped a program without instances to make room.
  for (const bool again : {false, true}) {
    if (!sent_.contains(program)) RETURN_IF_ERROR(SendProgram(program));
    request.set_program(sent_.at(program));
    proto::InstantiateReply reply;
    const absl::Status status =
        connection_.Invoke("Instantiate", &proto::Worker::Stub::Instantiate, request, reply);
    if (status.ok()) return reply;
    if (again || !absl::IsNotFound(status)) return status;
    sent_.erase(program);
  }
  return absl::InternalError("unreachable");
}

absl::StatusOr<InstanceId> RemoteProgramHost::Impl::Instantiate(
    ProgramId program, absl::Span<const SlotBinding> bindings) {
  proto::InstantiateRequest request;
  for (const SlotBinding& binding : bindings) {
    const auto* buffer = dynamic_cast<const RemoteBuffer*>(binding.buffer);
    const bool weight = binding.kind == SlotKind::kWeight;
    if (!weight && binding.kind != SlotKind::kCache) {
      return absl::InvalidArgumentError("only weights and caches are bound");
    }
    if (buffer == nullptr || !buffer->BelongsTo(connection_)) {
      return absl::InvalidArgumentError(absl::StrCat(weight ? "weight " : "cache ", binding.id,
                                                     " does not lie in memory of ",
                                                     connection_.label()));
    }
    proto::Binding& bound = *request.add_bindings();
    bound.set_kind(weight ? 0 : 1);
    bound.set_id(binding.id);
    bound.set_buffer(buffer->handle());
    bound.set_offset(binding.offset);
  }
  request.set_sha256(ContentDigest(request));
  MutexLock lock(program_mutex_);
  const Program* known = programs_.Find(program);
  if (known == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", static_cast<int64_t>(program), " is not installed"));
  }
  connection_.FlushFrees();
  ASSIGN_OR_RETURN(const proto::InstantiateReply reply, CallInstantiate(request, program));
  const InstanceId instance{reply.instance()};
  MutexLock state(mutex_);
  if (instances_.contains(instance)) {
    return connection_.Nonsense("Instantiate",
                                absl::StrCat("instance ", reply.instance(), " exists already"));
  }
  programs_.Use(program);
  instances_[instance] = {program, OutputBytes(*known)};
  counters_.memory_replaced = reply.memory_replaced();
  counters_.prepared_again = reply.prepared_again();
  counters_.last_reason = reply.replaced_reason();
  return instance;
}

absl::Status RemoteProgramHost::Impl::Release(InstanceId instance) {
  MutexLock lock(program_mutex_);
  {
    MutexLock state(mutex_);
    const auto found = instances_.find(instance);
    if (found == instances_.end()) {
      return absl::NotFoundError(
          absl::StrCat("instance ", static_cast<int64_t>(instance), " is not known"));
    }
    programs_.Unuse(found->second.program);
    instances_.erase(found);
  }
  proto::ReleaseInstanceRequest request;
  proto::ReleaseInstanceReply reply;
  request.set_instance(static_cast<int64_t>(instance));
  return connection_.Invoke("ReleaseInstance", &proto::Worker::Stub::ReleaseInstance, request,
                            reply);
}

// --- steps ---

absl::Status RemoteProgramHost::Impl::Explain(const absl::Status& error) {
  return options_.explain ? options_.explain(error) : connection_.Explain(error);
}

absl::Status RemoteProgramHost::Impl::Send(MessageKind kind, int64_t step,
                                           absl::Span<const absl::Span<const uint8_t>> parts) {
  RETURN_IF_ERROR(connection_.lost());
  const MessageHeader header{.epoch = options_.epoch, .kind = KindOf(kind), .step = step, .id = 0};
  const absl::Status status = options_.port->Send(options_.peer, header, parts);
  if (!status.ok()) return Explain(status);
  MutexLock lock(mutex_);
  ++remote_.messages_sent;
  for (const absl::Span<const uint8_t> part : parts) {
    remote_.bytes_sent += static_cast<int64_t>(part.size());
  }
  return absl::OkStatus();
}

absl::Status RemoteProgramHost::Impl::Launch(InstanceId instance, const StepInput& input) {
  StepRequest request;
  request.instance = instance;
  request.input = input;
  const Clock::TimePoint now = connection_.clock().Now();
  request.deadline_ms = DeadlineMs(input.deadline, now, connection_.limits());
  MutexLock lock(send_mutex_);
  {
    MutexLock state(mutex_);
    const auto found = instances_.find(instance);
    if (found == instances_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("instance ", static_cast<int64_t>(instance), " is not known"));
    }
    if (launched_.contains(input.step)) {
      return absl::InvalidArgumentError(absl::StrCat("step ", input.step, " is in flight already"));
    }
    launched_[input.step] = {found->second.output_bytes, now};
  }
  request_.Encode(request);
  const absl::Status sent = Send(MessageKind::kExecute, input.step, request_.parts());
  MutexLock state(mutex_);
  if (!sent.ok()) {
    launched_.erase(input.step);
    return sent;
  }
  ++counters_.launched;
  if (launched_.size() > 1) ++counters_.overlapped;
  return absl::OkStatus();
}

absl::Status RemoteProgramHost::Impl::CheckReply(const StepReply& reply,
                                                 const Launched& launched) const {
  if (!reply.status.ok()) {
    return connection_.Error(reply.status.code(), kExecuteVerb, StdView(reply.status.message()));
  }
  const std::vector<std::vector<uint8_t>>& outputs = reply.output.outputs;
  if (outputs.size() != launched.output_bytes.size()) {
    return connection_.Nonsense(kExecuteVerb, absl::StrCat(outputs.size(), " outputs instead of ",
                                                           launched.output_bytes.size()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (static_cast<int64_t>(outputs[i].size()) == launched.output_bytes[i]) continue;
    return connection_.Nonsense(
        kExecuteVerb, absl::StrCat("output ", i, " has ", outputs[i].size(), " bytes instead of ",
                                   launched.output_bytes[i]));
  }
  if (!IsTime(reply.output.compute_seconds) || !IsTime(reply.output.wait_seconds)) {
    return connection_.Nonsense(kExecuteVerb, "it took a time that is none");
  }
  return absl::OkStatus();
}

absl::StatusOr<StepOutput> RemoteProgramHost::Impl::Await(int64_t step, Clock::TimePoint deadline) {
  Launched launched;
  {
    MutexLock lock(mutex_);
    const auto found = launched_.find(step);
    if (found == launched_.end()) {
      return absl::NotFoundError(absl::StrCat("step ", step, " is not in flight"));
    }
    launched = found->second;
  }
  const MessageFilter filter{
      .kinds = KindBit(KindOf(MessageKind::kReply)), .peer = options_.peer, .step = step, .id = 0};
  const absl::StatusOr<Message> message = options_.port->Receive(filter, deadline);
  if (!message.ok() && absl::IsDeadlineExceeded(message.status())) return message.status();
  StepReply reply;
  absl::Status decoded;
  if (message.ok()) decoded = DecodeStepReply(message->payload, connection_.limits(), reply);
  {
    MutexLock lock(mutex_);
    launched_.erase(step);
    if (message.ok()) {
      ++remote_.messages_received;
      remote_.bytes_received += static_cast<int64_t>(message->payload.size());
    }
  }
  if (!message.ok()) return Explain(message.status());
  if (!decoded.ok()) return connection_.Nonsense(kExecuteVerb, StdView(decoded.message()));
  const absl::Status checked = CheckReply(reply, launched);
  if (!checked.ok()) return Explain(checked);
  MutexLock lock(mutex_);
  remote_.compute_seconds += reply.output.compute_seconds;
  remote_.wait_seconds += reply.output.wait_seconds;
  remote_.round_trip_seconds += SecondsSince(connection_.clock(), launched.at);
  return std::move(reply.output);
}

absl::Status RemoteProgramHost::Impl::Cancel(int64_t step) {
  {
    MutexLock lock(mutex_);
    if (!launched_.contains(step)) {
      return absl::InvalidArgumentError(absl::StrCat("step ", step, " is not in flight"));
    }
  }
  return Send(MessageKind::kCancel, step, {});
}

RemoteProgramHost::RemoteProgramHost(const RemoteProgramHostOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
RemoteProgramHost::~RemoteProgramHost() = default;

absl::StatusOr<ProgramId> RemoteProgramHost::Install(Program program) {
  return impl_->Install(std::move(program));
}
absl::StatusOr<InstanceId> RemoteProgramHost::Instantiate(ProgramId program,
                                                          absl::Span<const SlotBinding> bindings) {
  return impl_->Instantiate(program, bindings);
}
absl::Status RemoteProgramHost::Release(InstanceId instance) { return impl_->Release(instance); }
absl::Status RemoteProgramHost::Launch(InstanceId instance, const StepInput& input) {
  return impl_->Launch(instance, input);
}
absl::StatusOr<StepOutput> RemoteProgramHost::Await(int64_t step, Clock::TimePoint deadline) {
  return impl_->Await(step, deadline);
}
absl::Status RemoteProgramHost::Cancel(int64_t step) { return impl_->Cancel(step); }
HostCounters RemoteProgramHost::counters() { return impl_->counters(); }
RemoteHostCounters RemoteProgramHost::remote_counters() { return impl_->remote_counters(); }

}  // namespace weft
