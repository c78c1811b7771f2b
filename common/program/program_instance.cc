#include "common/program/program_instance.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

absl::string_view KindText(SlotKind kind) { return kind == SlotKind::kWeight ? "weight" : "cache"; }

// The bytes of a weight keep their meaning only where tensors lie the same way.
absl::Status CheckPacking(const CommandMemory& memory) {
  const BufferType& from = memory.source.buffer->type();
  const BufferType& to = memory.destination.buffer->type();
  if (from.layout() == to.layout()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("the weight in ", from.name(), " is packed as ",
                                               AbslView(from.layout()), ", its copy in ", to.name(),
                                               " as ", AbslView(to.layout())));
}

bool IsBound(SlotKind kind) { return kind == SlotKind::kWeight || kind == SlotKind::kCache; }

absl::Status CheckBinding(const Slot& slot, const SlotBinding& binding, const Device& device) {
  const std::string what = absl::StrCat(KindText(slot.kind), " ", slot.id);
  if (binding.buffer == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is bound to no buffer"));
  }
  if (const Support support = device.Supports(binding.buffer->type()); !support.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", support.message()));
  }
  const absl::Status range = CheckRange(*binding.buffer, binding.offset, slot.bytes);
  if (!range.ok()) return absl::InvalidArgumentError(absl::StrCat(what, ": ", range.message()));
  return absl::OkStatus();
}

}  // namespace

std::string CommandText(const Program& program, const Stream& stream, size_t command) {
  const std::string text = absl::StrCat("command ", command);
  const Command& value = stream.commands[command];
  if (const auto* compute = std::get_if<ComputeCommand>(&value)) {
    if (compute->nodes.empty()) return absl::StrCat(text, " (no nodes)");
    const size_t more = compute->nodes.size() - 1;
    return absl::StrCat(text, " (", NodeText(program.graph, compute->nodes[0]),
                        more == 0 ? "" : absl::StrCat(" and ", more, " more"), ")");
  }
  if (const auto* copy = std::get_if<CopyCommand>(&value)) {
    return absl::StrCat(text, " (", NodeText(program.graph, copy->node), ")");
  }
  if (const auto* experts = std::get_if<CopyExpertsCommand>(&value)) {
    return absl::StrCat(text, " (experts of ", NodeText(program.graph, experts->node), ")");
  }
  if (const auto* observe = std::get_if<ObserveCommand>(&value)) {
    return absl::StrCat(text, " (observe ", NodeText(program.graph, observe->node), ")");
  }
  if (const auto* send = std::get_if<SendCommand>(&value)) {
    return absl::StrCat(text, " (send ", NodeText(program.graph, send->node), " to process ",
                        send->peer, ")");
  }
  if (const auto* receive = std::get_if<ReceiveCommand>(&value)) {
    return absl::StrCat(text, " (", NodeText(program.graph, receive->node), " from process ",
                        receive->peer, ")");
  }
  if (const auto* collective = std::get_if<CollectiveCommand>(&value)) {
    return absl::StrCat(text, collective->detached ? " (begin " : " (",
                        NodeText(program.graph, collective->node), ")");
  }
  if (const auto* finish = std::get_if<FinishCommand>(&value)) {
    return absl::StrCat(text, " (finish ", NodeText(program.graph, finish->node), ")");
  }
  const auto* record = std::get_if<RecordCommand>(&value);
  return absl::StrCat(text, record != nullptr ? " (record" : " (wait", " event ",
                      record != nullptr ? record->event : std::get<WaitCommand>(value).event, ")");
}

absl::StatusOr<std::unique_ptr<ProgramInstance>> ProgramInstance::Create(
    ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings,
    const SessionMemory& memory, absl::Span<Backend* const> backends) {
  std::unique_ptr<ProgramInstance> instance(new ProgramInstance(id, program));
  RETURN_IF_ERROR(instance->CheckMemories(backends));
  RETURN_IF_ERROR(instance->Bind(bindings, backends));
  instance->stream_of_ = StreamOfDevice(program);
  instance->stream_of_.resize(backends.size(), -1);
  instance->ResolveInputs();
  RETURN_IF_ERROR(instance->MakeEvents(backends));
  RETURN_IF_ERROR(instance->PrepareAgain(memory, backends));
  return instance;
}

absl::Status ProgramInstance::CheckMemories(absl::Span<Backend* const> backends) const {
  for (size_t d = 0; d < program_.devices.size(); ++d) {
    Device& device = backends[d]->device();
    for (const int32_t memory : program_.devices[d].memories) {
      const Support support = device.Supports(backends[memory]->device().buffer_type());
      if (support.ok()) continue;
      return absl::Status(support.code(),
                          absl::StrCat("device ", d, " (", program_.devices[d].name,
                                       ") computes in the memory of device ", memory, " (",
                                       program_.devices[memory].name, "): ", support.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramInstance::MakeEvents(absl::Span<Backend* const> backends) {
  events_.resize(static_cast<size_t>(program_.event_count) * program_.copies);
  for (const Stream& stream : program_.streams) {
    for (const Command& command : stream.commands) {
      const auto* record = std::get_if<RecordCommand>(&command);
      if (record == nullptr) continue;
      for (int32_t copy = 0; copy < program_.copies; ++copy) {
        ASSIGN_OR_RETURN(events_[static_cast<size_t>(record->event) * program_.copies + copy],
                         backends[stream.device]->NewEvent());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramInstance::Bind(absl::Span<const SlotBinding> bindings,
                                   absl::Span<Backend* const> backends) {
  absl::flat_hash_map<std::pair<SlotKind, int32_t>, const SlotBinding*> by_id;
  for (const SlotBinding& binding : bindings) {
    if (!IsBound(binding.kind)) {
      return absl::InvalidArgumentError("only weights and caches are bound");
    }
    if (!by_id.emplace(std::pair(binding.kind, binding.id), &binding).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(KindText(binding.kind), " ", binding.id, " is bound twice"));
    }
  }
  bound_.resize(program_.slots.size());
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (!IsBound(slot.kind)) continue;
    const auto found = by_id.find(std::pair(slot.kind, slot.id));
    if (found == by_id.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(KindText(slot.kind), " ", slot.id, " is not bound"));
    }
    const SlotBinding& binding = *found->second;
    RETURN_IF_ERROR(CheckBinding(slot, binding, backends[slot.device]->device()));
    bound_[i] = {binding.buffer, binding.offset};
    if (slot.kind == SlotKind::kCache) cache_slots_.push_back(static_cast<int32_t>(i));
  }
  const auto by_cache = [this](int32_t a, int32_t b) {
    return program_.slots[a].id < program_.slots[b].id;
  };
  std::sort(cache_slots_.begin(), cache_slots_.end(), by_cache);
  return absl::OkStatus();
}

void ProgramInstance::ResolveInputs() {
  for (const Slot& slot : program_.slots) {
    if (slot.kind != SlotKind::kInput) continue;
    if (inputs_.size() <= static_cast<size_t>(slot.id)) inputs_.resize(slot.id + 1);
    inputs_[slot.id].bytes = slot.bytes;
  }
  for (HostInput& input : inputs_) {
    input.offset = input_bytes_;
    input_bytes_ += AlignUp(input.bytes, kTensorAlignment);
  }
  for (const ProgramOutput& output : program_.outputs) {
    output_bytes_.push_back(ByteExtent(program_.graph.layout(output.node)).value_or(0));
  }
}

bool ProgramInstance::IsCurrent(const SessionMemory& memory) const {
  for (int32_t copy = 0; copy < static_cast<int32_t>(shared_.size()); ++copy) {
    if (shared_[copy] != memory.Resolve(program_, copy)) return false;
  }
  return true;
}

absl::Status ProgramInstance::PrepareAgain(const SessionMemory& memory,
                                           absl::Span<Backend* const> backends) {
  usable_ = false;
  shared_.clear();
  for (int32_t copy = 0; copy < program_.copies; ++copy) {
    shared_.push_back(memory.Resolve(program_, copy));
  }
  streams_.clear();
  streams_.resize(program_.streams.size());
  for (int32_t copy = 0; copy < program_.copies; ++copy) {
    ResolvePlaces(copy);
    ResolveTransfers(copy);
    for (size_t s = 0; s < streams_.size(); ++s) {
      RETURN_IF_ERROR(PrepareStream(static_cast<int32_t>(s), copy, backends));
    }
  }
  usable_ = true;
  return absl::OkStatus();
}

SlotMemory ProgramInstance::MemoryOf(const SlotPlace& place, int32_t copy) const {
  if (place.slot < 0) return {};
  const bool bound = IsBound(program_.slots[place.slot].kind);
  const SlotMemory& slot = bound ? bound_[place.slot] : shared_[copy][place.slot];
  return {slot.buffer, slot.offset + place.offset};
}

void ProgramInstance::ResolvePlaces(int32_t copy) {
  places_.clear();
  places_.reserve(program_.places.size());
  for (const SlotPlace& place : program_.places) {
    const SlotMemory where = MemoryOf(place, copy);
    places_.push_back({where.buffer, where.offset});
  }
}

void ProgramInstance::ResolveTransfers(int32_t copy) {
  // Inputs lie where they lie in every copy.
  for (size_t i = 0; copy == 0 && i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != SlotKind::kInput) continue;
    Transfer input{slot.id, slot.bytes, inputs_[slot.id].offset, {}};
    input.memory.Add(shared_[copy][i]);
    streams_[stream_of_[slot.device]].inputs.push_back(std::move(input));
  }
  const std::vector<int32_t> stream_of = StreamOfOutputs(program_);
  std::vector<size_t> next(streams_.size());
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    std::vector<Transfer>& outputs = streams_[stream_of[i]].outputs;
    const size_t k = next[stream_of[i]]++;
    if (copy == 0) outputs.push_back({static_cast<int32_t>(i), output_bytes_[i], 0, {}});
    outputs[k].memory.Add(MemoryOf(program_.places[Index(program_.outputs[i].node)], copy));
  }
}

absl::Status ProgramInstance::PrepareStream(int32_t s, int32_t copy,
                                            absl::Span<Backend* const> backends) {
  const Stream& stream = program_.streams[s];
  Backend& backend = *backends[stream.device];
  std::vector<PreparedCommand>& prepared = streams_[s].commands;
  prepared.resize(stream.commands.size());
  for (size_t i = 0; i < prepared.size(); ++i) {
    if (copy > 0 && !DiffersByCopy(stream.commands[i])) continue;
    const auto* collective = std::get_if<CollectiveCommand>(&stream.commands[i]);
    if (collective != nullptr && copy == 0) {
      prepared[i].collective = PrepareCollective(program_, *collective, stream.device);
    }
    const absl::Status status = PrepareCommand(stream.commands[i], copy, backend, prepared[i]);
    if (status.ok()) continue;
    return absl::Status(
        status.code(), absl::StrCat(backend.device().name(), ", ", CommandText(program_, stream, i),
                                    ": ", status.message()));
  }
  return absl::OkStatus();
}

bool ProgramInstance::IsCrossing(NodeId id) const {
  const SlotPlace& place = program_.places[Index(id)];
  return place.slot >= 0 && program_.slots[place.slot].kind == SlotKind::kCrossing;
}

bool ProgramInstance::DiffersByCopy(const Command& command) const {
  if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
    return std::any_of(compute->nodes.begin(), compute->nodes.end(), [&](NodeId id) {
      const auto& sources = program_.graph.node(id).sources;
      return IsCrossing(id) || std::any_of(sources.begin(), sources.end(),
                                           [&](NodeId source) { return IsCrossing(source); });
    });
  }
  const auto* copy = std::get_if<CopyCommand>(&command);
  if (copy != nullptr) {
    return IsCrossing(copy->node) || IsCrossing(program_.graph.node(copy->node).sources[0]);
  }
  const auto* experts = std::get_if<CopyExpertsCommand>(&command);
  if (experts != nullptr) return IsCrossing(experts->node) || IsCrossing(experts->ids);
  const auto* send = std::get_if<SendCommand>(&command);
  if (send != nullptr) return IsCrossing(send->node);
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  if (receive != nullptr) return IsCrossing(receive->node);
  if (const auto* collective = std::get_if<CollectiveCommand>(&command)) {
    const auto& sources = program_.graph.node(collective->node).sources;
    return IsCrossing(collective->node) || (!sources.empty() && IsCrossing(sources[0]));
  }
  const auto* observe = std::get_if<ObserveCommand>(&command);
  return observe != nullptr && IsCrossing(observe->node);
}

absl::Status ProgramInstance::PrepareCommand(const Command& command, int32_t copy, Backend& backend,
                                             PreparedCommand& prepared) {
  if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
    ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable,
                     backend.Prepare(GraphSlice{&program_.graph, compute->nodes, places_}));
    prepared.executable.Add(std::move(executable));
  } else if (const auto* move = std::get_if<CopyCommand>(&command)) {
    prepared.bytes = move->bytes;
    const CommandMemory memory = {
        MemoryOf(move->source, copy), MemoryOf(move->destination, copy), {}};
    if (program_.slots[move->source.slot].kind == SlotKind::kWeight) {
      RETURN_IF_ERROR(CheckPacking(memory));
    }
    prepared.memory.Add(memory);
  } else if (const auto* experts = std::get_if<CopyExpertsCommand>(&command)) {
    const CommandMemory memory = {MemoryOf(experts->source, copy),
                                  MemoryOf(experts->destination, copy),
                                  MemoryOf(experts->ids_place, copy)};
    RETURN_IF_ERROR(CheckPacking(memory));
    prepared.memory.Add(memory);
  } else if (const auto* observe = std::get_if<ObserveCommand>(&command)) {
    prepared.bytes = *ByteExtent(program_.graph.layout(observe->node));
    prepared.memory.Add({MemoryOf(program_.places[Index(observe->node)], copy), {}, {}});
  } else if (const auto* send = std::get_if<SendCommand>(&command)) {
    prepared.bytes = send->bytes;
    prepared.memory.Add({MemoryOf(send->source, copy), {}, {}});
  } else if (const auto* receive = std::get_if<ReceiveCommand>(&command)) {
    prepared.bytes = receive->bytes;
    prepared.memory.Add({{}, MemoryOf(receive->destination, copy), {}});
  } else if (const auto* collective = std::get_if<CollectiveCommand>(&command)) {
    prepared.bytes = collective->bytes;
    prepared.memory.Add(
        {MemoryOf(collective->source, copy), MemoryOf(collective->destination, copy), {}});
  } else if (const auto* record = std::get_if<RecordCommand>(&command)) {
    prepared.event = record->event;
  } else if (const auto* wait = std::get_if<WaitCommand>(&command)) {
    prepared.event = wait->event;
  }
  return absl::OkStatus();
}

bool ProgramInstance::BindsBuffer(const Buffer* buffer) const {
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const SlotMemory& memory) { return memory.buffer == buffer; });
}

const Stream* ProgramInstance::StreamOf(int32_t device) const {
  const int32_t stream = stream_of_[device];
  return stream < 0 ? nullptr : &program_.streams[stream];
}

const PreparedStream* ProgramInstance::PreparedOf(int32_t device) const {
  const int32_t stream = stream_of_[device];
  return stream < 0 ? nullptr : &streams_[stream];
}

int32_t ProgramInstance::CacheSlot(int32_t cache) const {
  const auto by_id = [this](int32_t slot, int32_t id) { return program_.slots[slot].id < id; };
  const auto found = std::lower_bound(cache_slots_.begin(), cache_slots_.end(), cache, by_id);
  return found != cache_slots_.end() && program_.slots[*found].id == cache ? *found : -1;
}

absl::Status ProgramInstance::CheckPageCopy(const PageCopy& copy) const {
  const int32_t slot = CacheSlot(copy.cache);
  if (slot < 0) {
    return absl::InvalidArgumentError(absl::StrCat("page copy: no cache ", copy.cache));
  }
  const int64_t size = program_.slots[slot].bytes;
  const int64_t last = std::max(copy.from, copy.to);
  const std::optional<int64_t> end = CheckedMultiply(last + 1, copy.page_bytes);
  if (copy.from < 0 || copy.to < 0 || copy.page_bytes < 1 || !end || *end > size) {
    return absl::InvalidArgumentError(
        absl::StrCat("page copy from ", copy.from, " to ", copy.to, " with ", copy.page_bytes,
                     " bytes a page leaves cache ", copy.cache, " of ", size, " bytes"));
  }
  return absl::OkStatus();
}

SlotMemory ProgramInstance::CacheOn(int32_t device, int32_t cache) const {
  const int32_t slot = CacheSlot(cache);
  return slot >= 0 && program_.slots[slot].device == device ? bound_[slot] : SlotMemory{};
}

}  // namespace weft
