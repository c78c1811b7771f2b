#include "common/program/program_instance.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

absl::string_view KindText(SlotKind kind) { return kind == SlotKind::kWeight ? "weight" : "cache"; }

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
  const auto* record = std::get_if<RecordCommand>(&value);
  return absl::StrCat(text, record != nullptr ? " (record" : " (wait", " event ",
                      record != nullptr ? record->event : std::get<WaitCommand>(value).event, ")");
}

absl::StatusOr<std::unique_ptr<ProgramInstance>> ProgramInstance::Create(
    ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings,
    const SessionMemory& memory, absl::Span<Backend* const> backends) {
  std::unique_ptr<ProgramInstance> instance(new ProgramInstance(id, program));
  RETURN_IF_ERROR(instance->Bind(bindings, backends));
  instance->stream_of_ = StreamOfDevice(program);
  instance->stream_of_.resize(backends.size(), -1);
  instance->events_.resize(static_cast<size_t>(program.event_count));
  for (const Stream& stream : program.streams) {
    for (const Command& command : stream.commands) {
      const auto* record = std::get_if<RecordCommand>(&command);
      if (record == nullptr) continue;
      ASSIGN_OR_RETURN(instance->events_[record->event], backends[stream.device]->NewEvent());
    }
  }
  RETURN_IF_ERROR(instance->PrepareAgain(memory, backends));
  return instance;
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

absl::Status ProgramInstance::PrepareAgain(const SessionMemory& memory,
                                           absl::Span<Backend* const> backends) {
  usable_ = false;
  slots_ = memory.Resolve(program_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (IsBound(program_.slots[i].kind)) slots_[i] = bound_[i];
  }
  places_.clear();
  places_.reserve(program_.places.size());
  for (const SlotPlace& place : program_.places) {
    const SlotMemory where = MemoryOf(place);
    places_.push_back({where.buffer, where.offset});
  }
  streams_.clear();
  streams_.resize(program_.streams.size());
  ResolveTransfers();
  for (size_t s = 0; s < streams_.size(); ++s) {
    RETURN_IF_ERROR(PrepareStream(static_cast<int32_t>(s), backends));
  }
  usable_ = true;
  return absl::OkStatus();
}

SlotMemory ProgramInstance::MemoryOf(const SlotPlace& place) const {
  if (place.slot < 0) return {};
  const SlotMemory& slot = slots_[place.slot];
  return {slot.buffer, slot.offset + place.offset};
}

void ProgramInstance::ResolveTransfers() {
  inputs_.clear();
  outputs_.clear();
  input_bytes_ = 0;
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != SlotKind::kInput) continue;
    if (inputs_.size() <= static_cast<size_t>(slot.id)) inputs_.resize(slot.id + 1);
    inputs_[slot.id] = {slots_[i], slot.bytes, 0};
    streams_[stream_of_[slot.device]].inputs.push_back(slot.id);
  }
  for (Transfer& input : inputs_) {
    input.host_offset = input_bytes_;
    input_bytes_ += AlignUp(input.bytes, kTensorAlignment);
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const NodeId node = program_.outputs[i].node;
    const SlotPlace& place = program_.places[Index(node)];
    outputs_.push_back({MemoryOf(place), ByteExtent(program_.graph.layout(node)).value_or(0), 0});
    streams_[stream_of_[program_.slots[place.slot].device]].outputs.push_back(
        static_cast<int32_t>(i));
  }
}

absl::Status ProgramInstance::PrepareStream(int32_t s, absl::Span<Backend* const> backends) {
  const Stream& stream = program_.streams[s];
  Backend& backend = *backends[stream.device];
  std::vector<PreparedCommand>& prepared = streams_[s].commands;
  prepared.resize(stream.commands.size());
  for (size_t i = 0; i < prepared.size(); ++i) {
    const absl::Status status = PrepareCommand(stream.commands[i], backend, prepared[i]);
    if (status.ok()) continue;
    return absl::Status(
        status.code(), absl::StrCat(backend.device().name(), ", ", CommandText(program_, stream, i),
                                    ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status ProgramInstance::PrepareCommand(const Command& command, Backend& backend,
                                             PreparedCommand& prepared) {
  if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
    ASSIGN_OR_RETURN(prepared.executable,
                     backend.Prepare(GraphSlice{&program_.graph, compute->nodes, places_}));
  } else if (const auto* copy = std::get_if<CopyCommand>(&command)) {
    prepared.source = MemoryOf(copy->source);
    prepared.destination = MemoryOf(copy->destination);
    prepared.bytes = copy->bytes;
  } else if (const auto* record = std::get_if<RecordCommand>(&command)) {
    prepared.event = record->event;
  } else if (const auto* wait = std::get_if<WaitCommand>(&command)) {
    prepared.event = wait->event;
  } else {
    return absl::UnimplementedError("this command");
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
  return slot >= 0 && program_.slots[slot].device == device ? slots_[slot] : SlotMemory{};
}

}  // namespace weft
