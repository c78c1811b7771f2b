#include "common/program/stream_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/expert_runs.h"

namespace weft {
namespace {

absl::Status InContext(const absl::Status& status, const std::string& where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

bool Stopped(const Step& step) { return step.stop.load(std::memory_order_relaxed); }

}  // namespace

absl::Status StreamRunner::Run(Step& step, StreamTimes& times) {
  RETURN_IF_ERROR(InContext(ApplyUpdates(step), "page tables"));
  const PreparedStream* prepared = step.instance->PreparedOf(device_);
  if (prepared == nullptr || Stopped(step)) return absl::OkStatus();
  times_ = {};
  used_experts_.clear();
  received_count_ = 0;
  absl::Status status = UploadInputs(step, *prepared);
  if (status.ok()) status = RunCommands(step, *prepared);
  if (status.ok()) status = FetchOutputs(step, *prepared);
  times.wait_seconds += times_.wait_seconds;
  times.wire_seconds += times_.wire_seconds;
  times.hand_off_seconds += times_.hand_off_seconds;
  return status;
}

absl::Status StreamRunner::ApplyUpdates(const Step& step) {
  for (const TableRun& run : step.table_runs) {
    Buffer* table = memory_.Table(run.table, device_);
    if (table == nullptr) continue;
    // Another device may hold a longer copy of the table.
    const int64_t offset = int64_t{run.first_entry} * 4;
    const int64_t bytes = std::min<int64_t>(int64_t{run.count} * 4, table->size() - offset);
    if (bytes <= 0) continue;
    RETURN_IF_ERROR(backend_.Upload(step.pages.data() + run.first_page, *table, offset, bytes));
  }
  for (const PageCopy& copy : step.page_copies) {
    const SlotMemory cache = step.instance->CacheOn(device_, copy.cache);
    if (cache.buffer == nullptr || copy.from == copy.to) continue;
    RETURN_IF_ERROR(backend_.Copy(*cache.buffer, cache.offset + copy.from * copy.page_bytes,
                                  *cache.buffer, cache.offset + copy.to * copy.page_bytes,
                                  copy.page_bytes));
  }
  return absl::OkStatus();
}

absl::Status StreamRunner::UploadInputs(const Step& step, const PreparedStream& prepared) {
  for (const Transfer& input : prepared.inputs) {
    const SlotMemory& to = input.memory[step.copy];
    RETURN_IF_ERROR(InContext(
        backend_.Upload(step.upload.data() + input.host_offset, *to.buffer, to.offset, input.bytes),
        absl::StrCat("input ", input.id)));
  }
  return absl::OkStatus();
}

absl::Status StreamRunner::RunCommands(Step& step, const PreparedStream& prepared) {
  const Stream& stream = *step.instance->StreamOf(device_);
  for (size_t i = 0; i < stream.commands.size(); ++i) {
    if (Stopped(step)) return absl::OkStatus();
    const absl::Status status = std::visit(
        [&](const auto& command) { return Execute(step, command, prepared.commands[i]); },
        stream.commands[i]);
    if (!status.ok()) {
      return InContext(status, CommandText(step.instance->program(), stream, i));
    }
  }
  return absl::OkStatus();
}

absl::Status StreamRunner::FetchOutputs(Step& step, const PreparedStream& prepared) {
  if (Stopped(step)) return absl::OkStatus();
  for (const Transfer& output : prepared.outputs) {
    const SlotMemory& from = output.memory[step.copy];
    RETURN_IF_ERROR(
        InContext(backend_.Download(*from.buffer, from.offset,
                                    step.output.outputs[output.id].data(), output.bytes),
                  absl::StrCat("output ", output.id)));
  }
  return absl::OkStatus();
}

absl::Status StreamRunner::Execute(Step& step, const ComputeCommand&,
                                   const PreparedCommand& prepared) {
  return backend_.Launch(*prepared.executable[step.copy]);
}

absl::Status StreamRunner::Execute(Step& step, const CopyCommand&,
                                   const PreparedCommand& prepared) {
  const CommandMemory& memory = prepared.memory[step.copy];
  return backend_.Copy(*memory.source.buffer, memory.source.offset, *memory.destination.buffer,
                       memory.destination.offset, prepared.bytes);
}

absl::Status StreamRunner::Execute(Step& step, const CopyExpertsCommand& command,
                                   const PreparedCommand& prepared) {
  const CommandMemory& memory = prepared.memory[step.copy];
  const Graph& graph = step.instance->program().graph;
  const TensorLayout& weight = graph.layout(command.node);
  ASSIGN_OR_RETURN(const absl::Span<const int32_t> used,
                   UsedExpertsOf(graph, command.ids, memory.ids));
  ASSIGN_OR_RETURN(const std::vector<ExpertRun> runs, ExpertRuns(used, weight.ne[2], weight.nb[2]));
  for (const ExpertRun& run : runs) {
    RETURN_IF_ERROR(backend_.Copy(*memory.source.buffer, memory.source.offset + run.offset,
                                  *memory.destination.buffer,
                                  memory.destination.offset + run.offset, run.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const int32_t>> StreamRunner::UsedExpertsOf(const Graph& graph,
                                                                      NodeId ids,
                                                                      const SlotMemory& memory) {
  for (const auto& [known, used] : used_experts_) {
    if (known == ids) return absl::MakeConstSpan(used);
  }
  // This stream computed them, or waits for the event of the one that did.
  RETURN_IF_ERROR(backend_.Synchronize());
  const TensorLayout& layout = graph.layout(ids);
  staging_.resize(static_cast<size_t>(*ByteExtent(layout)));
  RETURN_IF_ERROR(
      memory.buffer->Get(memory.offset, staging_.data(), static_cast<int64_t>(staging_.size())));
  used_experts_.emplace_back(ids, UsedExperts(layout, staging_));
  return absl::MakeConstSpan(used_experts_.back().second);
}

absl::StatusOr<absl::Span<const uint8_t>> StreamRunner::ReadBack(const SlotMemory& memory,
                                                                 int64_t bytes) {
  RETURN_IF_ERROR(backend_.Synchronize());
  const auto size = static_cast<size_t>(bytes);
  if (const auto* host = static_cast<const uint8_t*>(memory.buffer->host_data())) {
    return absl::MakeConstSpan(host + memory.offset, size);
  }
  staging_.resize(size);
  RETURN_IF_ERROR(memory.buffer->Get(memory.offset, staging_.data(), bytes));
  return absl::MakeConstSpan(staging_);
}

absl::Status StreamRunner::Execute(Step& step, const ObserveCommand& command,
                                   const PreparedCommand& prepared) {
  if (!observer_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                   ReadBack(prepared.memory[step.copy].source, prepared.bytes));
  if (observer_(step.number, command.tag, bytes)) return absl::OkStatus();
  return absl::AbortedError("the observer stopped the step");
}

absl::Status StreamRunner::Execute(Step& step, const SendCommand& command,
                                   const PreparedCommand& prepared) {
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                   ReadBack(prepared.memory[step.copy].source, prepared.bytes));
  const Clock::TimePoint start = clock_.Now();
  absl::Status sent = edges_->Send(step.edge_step, command.edge, command.peer, bytes);
  times_.hand_off_seconds += SecondsSince(clock_, start);
  return sent;
}

std::vector<uint8_t>& StreamRunner::NextReceived(int64_t bytes) {
  if (received_count_ == received_.size()) received_.emplace_back();
  std::vector<uint8_t>& next = received_[received_count_++];
  next.resize(static_cast<size_t>(bytes));
  return next;
}

absl::Status StreamRunner::Execute(Step& step, const ReceiveCommand& command,
                                   const PreparedCommand& prepared) {
  const SlotMemory& memory = prepared.memory[step.copy].destination;
  auto* const host = static_cast<uint8_t*>(memory.buffer->host_data());
  absl::Span<uint8_t> bytes;
  if (host != nullptr) {
    // What was queued before may still use that memory.
    RETURN_IF_ERROR(backend_.Synchronize());
    bytes = absl::MakeSpan(host + memory.offset, static_cast<size_t>(prepared.bytes));
  } else {
    bytes = absl::MakeSpan(NextReceived(prepared.bytes));
  }
  const Clock::TimePoint start = clock_.Now();
  const absl::Status received =
      edges_->Receive(step.edge_step, command.edge, command.peer, bytes, step.deadline, step.stop);
  const Clock::TimePoint came = clock_.Now();
  times_.wait_seconds += std::chrono::duration<double>(came - start).count();
  if (absl::IsCancelled(received) && Stopped(step)) return absl::OkStatus();
  RETURN_IF_ERROR(received);
  if (host != nullptr) return absl::OkStatus();
  absl::Status uploaded =
      backend_.Upload(bytes.data(), *memory.buffer, memory.offset, prepared.bytes);
  times_.hand_off_seconds += SecondsSince(clock_, came);
  return uploaded;
}

absl::Status StreamRunner::FillVector(const PreparedCollective& collective,
                                      const SlotMemory& source, absl::Span<float> vector) {
  if (source.buffer == nullptr || collective.own_elements == 0) return absl::OkStatus();
  float* const own = vector.data() + collective.own_begin;
  const auto bytes = collective.own_elements * static_cast<int64_t>(sizeof(float));
  const auto* const host = static_cast<const uint8_t*>(source.buffer->host_data());
  if (host == nullptr) return source.buffer->Get(source.offset, own, bytes);
  // In place there is nothing to do.
  const uint8_t* const from = host + source.offset;
  if (reinterpret_cast<uint8_t*>(own) != from) std::memcpy(own, from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

StreamRunner::Exchange& StreamRunner::NextExchange() {
  if (spare_.empty()) spare_.push_back(std::make_unique<Exchange>());
  under_way_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  return *under_way_.back();
}

void StreamRunner::Drain() {
  detached_.Drain();
  for (std::unique_ptr<Exchange>& exchange : under_way_) spare_.push_back(std::move(exchange));
  under_way_.clear();
}

// In the memory of the result where the host reaches it and the ranks' parts lie in it one behind
// the other; else in memory of the stream.
absl::Status StreamRunner::Begin(const PreparedCommand& prepared, const CommandMemory& memory,
                                 Exchange& exchange) {
  exchange.prepared = &prepared;
  const PreparedCollective& collective = *prepared.collective;
  const SlotMemory& result = memory.destination;
  auto* const host = static_cast<uint8_t*>(result.buffer->host_data());
  exchange.result = &result;
  exchange.upload = host == nullptr ? &NextReceived(prepared.bytes) : nullptr;
  exchange.joined =
      reinterpret_cast<float*>(host == nullptr ? exchange.upload->data() : host + result.offset);
  float* values = exchange.joined;
  const auto elements = static_cast<size_t>(collective.elements);
  if (collective.rows > 1) {
    exchange.rows.resize(elements);
    values = exchange.rows.data();
  }
  exchange.vector = absl::MakeSpan(values, elements);
  RETURN_IF_ERROR(backend_.Synchronize());
  return FillVector(collective, memory.source, exchange.vector);
}

absl::Status StreamRunner::End(Step& step, const absl::Status& done, const Exchange& exchange) {
  if (absl::IsCancelled(done) && Stopped(step)) return absl::OkStatus();
  RETURN_IF_ERROR(done);
  const PreparedCollective& collective = *exchange.prepared->collective;
  if (collective.rows > 1) JoinParts(collective, exchange.vector, exchange.joined);
  if (exchange.upload == nullptr) return absl::OkStatus();
  return backend_.Upload(exchange.upload->data(), *exchange.result->buffer, exchange.result->offset,
                         exchange.prepared->bytes);
}

absl::Status StreamRunner::Execute(Step& step, const CollectiveCommand& command,
                                   const PreparedCommand& prepared) {
  const PreparedCollective& collective = *prepared.collective;
  const CommandMemory& memory = prepared.memory[step.copy];
  if (command.detached) {
    Exchange& exchange = NextExchange();
    exchange.node = command.node;
    RETURN_IF_ERROR(Begin(prepared, memory, exchange));
    return detached_.Begin(step, collective, exchange.vector);
  }
  RETURN_IF_ERROR(Begin(prepared, memory, exchange_));
  const Clock::TimePoint start = clock_.Now();
  double waited = 0;
  absl::Status done;
  if (detached_.idle()) {
    done = collectives_.Run(step, collective, exchange_.vector, waited);
  } else {
    // One of a device's collectives at a time receives.
    RETURN_IF_ERROR(detached_.Begin(step, collective, exchange_.vector));
    done = detached_.Finish(collective);
    waited = SecondsSince(clock_, start);
  }
  times_.wait_seconds += waited;
  times_.wire_seconds += SecondsSince(clock_, start) - waited;
  return End(step, done, exchange_);
}

absl::Status StreamRunner::Execute(Step& step, const FinishCommand& command,
                                   const PreparedCommand&) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(), [&](const auto& exchange) {
    return exchange->node == command.node;
  });
  if (found == under_way_.end()) return absl::InternalError("it was never begun");
  Exchange& exchange = *spare_.emplace_back(std::move(*found));
  under_way_.erase(found);
  const Clock::TimePoint start = clock_.Now();
  const absl::Status done = detached_.Finish(*exchange.prepared->collective);
  times_.wait_seconds += SecondsSince(clock_, start);
  return End(step, done, exchange);
}

absl::Status StreamRunner::Execute(Step& step, const RecordCommand&,
                                   const PreparedCommand& prepared) {
  RETURN_IF_ERROR(backend_.Record(step.instance->event(prepared.event, step.copy)));
  events_.MarkRecorded(step, prepared.event);
  return absl::OkStatus();
}

absl::Status StreamRunner::Execute(Step& step, const WaitCommand&,
                                   const PreparedCommand& prepared) {
  const Clock::TimePoint start = clock_.Now();
  const bool recorded = events_.AwaitRecorded(step, prepared.event, device_);
  times_.wait_seconds += SecondsSince(clock_, start);
  if (!recorded) return absl::OkStatus();
  return backend_.Wait(step.instance->event(prepared.event, step.copy));
}

}  // namespace weft
