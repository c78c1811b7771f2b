// The order of a program's commands: which of them is certain to have finished when another runs.
//
// The streams are played in any order that their events allow. Each stream carries a clock with one
// entry per stream: the last command of that stream that is certain to have finished (Lamport 1978,
// Mattern 1989: vector clocks). Position 0 of a stream is its preamble, in which a step fills its
// inputs, page tables and copied pages; command i is position i + 1.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/access_log.h"
#include "common/program/memory_owners.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

constexpr int32_t kUnknown = -1;
using VectorClock = std::vector<int32_t>;

struct Producer {
  int32_t stream = kUnknown;  // kUnknown: not played yet
  int32_t position = 0;
};

class OrderChecker {
 public:
  explicit OrderChecker(const Program& program);
  absl::Status Check();

 private:
  // Plays stream `s` until its end or a wait that must wait. Errors name the command.
  absl::Status PlayStream(int32_t s);
  // False: the command must wait for an event that is not recorded yet.
  absl::StatusOr<bool> Play(const Command& command);
  absl::StatusOr<bool> Play(const ComputeCommand& command);
  absl::StatusOr<bool> Play(const CopyCommand& command);
  absl::StatusOr<bool> Play(const CopyExpertsCommand& command);
  absl::StatusOr<bool> Play(const ObserveCommand& command);
  absl::StatusOr<bool> Play(const SendCommand& command);
  absl::StatusOr<bool> Play(const ReceiveCommand& command);
  absl::StatusOr<bool> Play(const CollectiveCommand& command);
  absl::StatusOr<bool> Play(const FinishCommand& command);
  absl::StatusOr<bool> Play(const RecordCommand& command);
  absl::StatusOr<bool> Play(const WaitCommand& command);

  // How a stream reaches a tensor: its kernels do, or a copy that moves bytes between memories.
  enum class Reach { kDirect, kCopy };
  // `id` is executed here and now: its sources are ready, its memory is this device's.
  absl::Status Produce(NodeId id, Reach reach) { return Produce(id, reach, Here()); }
  // The same, done only at a later position of this stream.
  absl::Status Produce(NodeId id, Reach reach, int32_t done);
  int32_t Here() const { return clocks_[stream_][stream_]; }
  // Where this stream finishes a collective that it is beginning; kUnknown: nowhere.
  int32_t FinishOf(NodeId node) const;
  // False: other ranks that are here have not come yet.
  bool Arrive(const CollectiveKey& key);
  absl::Status Read(NodeId id, Reach reach);
  absl::Status CheckReach(const Slot& slot, Reach reach) const;
  absl::Status CheckWritten(NodeId id) const;
  absl::Status Write(NodeId id, int32_t done);
  absl::Status CheckFinished();
  absl::Status CheckOutputs();
  absl::Status HandBack(NodeId id);  // at the end of this stream
  const Slot& SlotOf(NodeId id) const { return program_.slots[program_.places[Index(id)].slot]; }
  int32_t HomeStream(NodeId id) const { return stream_of_[SlotOf(id).device]; }

  const Program& program_;
  const Graph& graph_;
  const std::vector<int32_t> stream_of_;
  const std::vector<NodeId> definers_;
  std::vector<std::vector<bool>> reachable_;  // [device][device]: one of its memories
  std::vector<Producer> producers_;
  std::vector<VectorClock> clocks_;                   // per stream
  std::vector<std::optional<VectorClock>> recorded_;  // per event
  std::vector<std::vector<int32_t>> waiting_;         // streams per event
  std::vector<int32_t> next_;                         // next command per stream
  std::vector<int32_t> runnable_;
  std::vector<int64_t> ranks_here_;                  // per communicator
  std::map<int32_t, std::vector<int32_t>> arrived_;  // streams at each collective
  std::vector<std::map<NodeId, int32_t>> finishes_;  // per stream: position of the first, by node
  std::map<NodeId, Producer> begun_;  // detached collectives: where they are finished
  MemoryOwners owners_;
  AccessLog log_;
  int32_t stream_ = 0;  // being played
};

OrderChecker::OrderChecker(const Program& program)
    : program_(program),
      graph_(program.graph),
      stream_of_(StreamOfDevice(program)),
      definers_(Definers(graph_)),
      producers_(graph_.nodes().size()),
      recorded_(program.event_count),
      waiting_(program.event_count),
      next_(program.streams.size()),
      owners_(program),
      log_(program) {
  for (const ProgramDevice& device : program.devices) {
    std::vector<bool>& reachable = reachable_.emplace_back(program.devices.size());
    for (const int32_t memory : device.memories) reachable[memory] = true;
  }
  for (const ProgramCommunicator& communicator : program.communicators) {
    ranks_here_.push_back(
        std::count_if(communicator.ranks.begin(), communicator.ranks.end(),
                      [](const CommunicatorRank& rank) { return rank.process == -1; }));
  }
  for (const Stream& stream : program.streams) {
    std::map<NodeId, int32_t>& finishes = finishes_.emplace_back();
    for (size_t i = 0; i < stream.commands.size(); ++i) {
      const auto* finish = std::get_if<FinishCommand>(&stream.commands[i]);
      if (finish != nullptr) finishes.emplace(finish->node, static_cast<int32_t>(i) + 1);
    }
  }
  const size_t count = program.streams.size();
  clocks_.assign(count, VectorClock(count, kUnknown));
  for (size_t s = 0; s < count; ++s) {
    clocks_[s][s] = 0;
    runnable_.push_back(static_cast<int32_t>(s));
  }
}

absl::Status OrderChecker::Check() {
  while (!runnable_.empty()) {
    const int32_t stream = runnable_.back();
    runnable_.pop_back();
    RETURN_IF_ERROR(PlayStream(stream));
  }
  return CheckFinished();
}

absl::Status OrderChecker::PlayStream(int32_t s) {
  stream_ = s;
  const std::vector<Command>& commands = program_.streams[s].commands;
  int32_t& next = next_[s];
  while (next < static_cast<int64_t>(commands.size())) {
    clocks_[s][s] = next + 1;
    const absl::StatusOr<bool> played = Play(commands[next]);
    if (!played.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stream ", s, ", command ", next, ": ", played.status().message()));
    }
    if (!*played) return absl::OkStatus();
    ++next;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> OrderChecker::Play(const Command& command) {
  return std::visit([this](const auto& value) { return Play(value); }, command);
}

absl::StatusOr<bool> OrderChecker::Play(const ComputeCommand& command) {
  for (const NodeId id : command.nodes) {
    if (graph_.Executes(id)) RETURN_IF_ERROR(Produce(id, Reach::kDirect));
  }
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const CopyCommand& command) {
  RETURN_IF_ERROR(Produce(command.node, Reach::kCopy));
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const CopyExpertsCommand& command) {
  const absl::Status ids = Read(command.ids, Reach::kCopy);
  if (!ids.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), ": ", ids.message()));
  }
  RETURN_IF_ERROR(Produce(command.node, Reach::kCopy));
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const ObserveCommand& command) {
  RETURN_IF_ERROR(Read(command.node, Reach::kDirect));
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const SendCommand& command) {
  RETURN_IF_ERROR(Read(command.node, Reach::kDirect));
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const ReceiveCommand& command) {
  RETURN_IF_ERROR(Produce(command.node, Reach::kDirect));
  return true;
}

bool OrderChecker::Arrive(const CollectiveKey& key) {
  std::vector<int32_t>& arrived = arrived_[key.id];
  const int64_t wanted = ranks_here_[key.communicator];
  if (std::find(arrived.begin(), arrived.end(), stream_) == arrived.end()) {
    arrived.push_back(stream_);
    // Those that wait go on; for those that do not, nothing changes.
    if (static_cast<int64_t>(arrived.size()) == wanted) {
      runnable_.insert(runnable_.end(), arrived.begin(), arrived.end() - 1);
    }
  }
  return static_cast<int64_t>(arrived.size()) == wanted;
}

int32_t OrderChecker::FinishOf(NodeId node) const {
  const auto found = finishes_[stream_].find(node);
  return found == finishes_[stream_].end() || found->second < Here() ? kUnknown : found->second;
}

// All ranks must get here before any of them goes on, or finishes. A detached one touches its
// memory until it is finished, so that what comes before that, here or behind an event, may not.
absl::StatusOr<bool> OrderChecker::Play(const CollectiveCommand& command) {
  const bool all_here = Arrive(*CollectiveKeyOf(graph_.node(command.node)));
  if (!command.detached) {
    if (all_here) RETURN_IF_ERROR(Produce(command.node, Reach::kDirect));
    return all_here;
  }
  const int32_t done = FinishOf(command.node);
  if (done == kUnknown) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), " is never finished"));
  }
  RETURN_IF_ERROR(Produce(command.node, Reach::kDirect, done));
  begun_[command.node] = {stream_, done};
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const FinishCommand& command) {
  const auto found = begun_.find(command.node);
  if (found == begun_.end() || found->second.stream != stream_ ||
      found->second.position != Here()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), " is no collective under way"));
  }
  return Arrive(*CollectiveKeyOf(graph_.node(command.node)));
}

absl::StatusOr<bool> OrderChecker::Play(const RecordCommand& command) {
  if (recorded_[command.event]) {
    return absl::InvalidArgumentError(absl::StrCat("event ", command.event, " is recorded twice"));
  }
  recorded_[command.event] = clocks_[stream_];
  std::vector<int32_t>& woken = waiting_[command.event];
  runnable_.insert(runnable_.end(), woken.begin(), woken.end());
  woken.clear();
  return true;
}

absl::StatusOr<bool> OrderChecker::Play(const WaitCommand& command) {
  if (!recorded_[command.event]) {
    waiting_[command.event].push_back(stream_);
    return false;
  }
  VectorClock& clock = clocks_[stream_];
  const VectorClock& seen = *recorded_[command.event];
  for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], seen[s]);
  return true;
}

absl::Status OrderChecker::Produce(NodeId id, Reach reach, int32_t done) {
  absl::Status status;
  for (const NodeId source : graph_.node(id).sources) {
    status = Read(source, reach);
    if (!status.ok()) break;
  }
  if (status.ok()) status = Write(id, done);
  for (const NodeId source : graph_.node(id).sources) {
    if (!status.ok() || done == Here()) break;
    // In place the result stands for both.
    const SlotRange range = RangeOf(program_, source);
    if (range.Overlaps(RangeOf(program_, id))) continue;
    status = log_.Read(range, stream_, clocks_[stream_], done);
  }
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(NodeText(graph_, id), ": ", status.message()));
  }
  producers_[Index(id)] = {stream_, done};
  return absl::OkStatus();
}

absl::Status OrderChecker::Read(NodeId id, Reach reach) {
  const std::string source = absl::StrCat("source ", Index(id));
  const auto usable = [&]() -> absl::Status {
    if (program_.places[Index(id)].slot < 0) return absl::InvalidArgumentError("has no memory");
    RETURN_IF_ERROR(CheckReach(SlotOf(id), reach));
    RETURN_IF_ERROR(CheckWritten(id));
    return owners_.CheckIntact(id);
  }();
  if (!usable.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source, " ", usable.message()));
  }
  absl::Status ordered = log_.Read(RangeOf(program_, id), stream_, clocks_[stream_]);
  if (ordered.ok()) return ordered;
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", ordered.message()));
}

absl::Status OrderChecker::CheckReach(const Slot& slot, Reach reach) const {
  const int32_t device = program_.streams[stream_].device;
  if (reach == Reach::kDirect && !reachable_[device][slot.device]) {
    return absl::InvalidArgumentError(absl::StrCat("lies in memory of device ", slot.device,
                                                   ", which device ", device, " cannot reach"));
  }
  // The other device may be a step ahead.
  if (program_.copies > 1 && slot.device != device && slot.kind != SlotKind::kCrossing &&
      slot.kind != SlotKind::kWeight) {
    return absl::InvalidArgumentError(absl::StrCat("lies in memory of device ", slot.device,
                                                   " outside crossing slots, and steps overlap"));
  }
  return absl::OkStatus();
}

absl::Status OrderChecker::CheckWritten(NodeId id) const {
  const NodeId definer = definers_[Index(id)];
  Producer producer = producers_[Index(definer)];
  if (const LeafAttributes* leaf = graph_.leaf(definer); leaf != nullptr) {
    if (leaf->kind == LeafKind::kWeight) return absl::OkStatus();
    producer = {HomeStream(definer), 0};
  }
  // Certain by the order of this stream, or by an event.
  if (producer.stream != kUnknown && clocks_[stream_][producer.stream] >= producer.position) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is not certain to be written",
      producer.stream == kUnknown ? "" : absl::StrCat(" by stream ", producer.stream)));
}

absl::Status OrderChecker::Write(NodeId id, int32_t done) {
  const Slot& slot = SlotOf(id);
  const absl::Status reach = CheckReach(slot, Reach::kDirect);
  if (!reach.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("its result ", reach.message()));
  }
  if (slot.kind != SlotKind::kArena && slot.kind != SlotKind::kCrossing &&
      slot.kind != SlotKind::kCache) {
    return absl::InvalidArgumentError("writes a weight, an input or a page table");
  }
  RETURN_IF_ERROR(owners_.Write(id));
  return log_.Write(RangeOf(program_, id), stream_, clocks_[stream_], done);
}

absl::Status OrderChecker::CheckFinished() {
  for (size_t s = 0; s < next_.size(); ++s) {
    const std::vector<Command>& commands = program_.streams[s].commands;
    if (next_[s] == static_cast<int64_t>(commands.size())) continue;
    const std::string text = absl::StrCat("stream ", s, ", command ", next_[s], ": waits for ");
    const auto* collective = std::get_if<CollectiveCommand>(&commands[next_[s]]);
    const auto* finish = std::get_if<FinishCommand>(&commands[next_[s]]);
    if (collective != nullptr || finish != nullptr) {
      const NodeId node = collective != nullptr ? collective->node : finish->node;
      return absl::InvalidArgumentError(
          absl::StrCat(text, "the other ranks of ", NodeText(graph_, node),
                       ", of which one waits for what comes only after this"));
    }
    return absl::InvalidArgumentError(absl::StrCat(text, "event ",
                                                   std::get<WaitCommand>(commands[next_[s]]).event,
                                                   ", which is recorded never or only after this"));
  }
  for (int32_t i = 0; i < graph_.size(); ++i) {
    if (graph_.Executes(NodeId{i}) && producers_[i].stream == kUnknown) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeText(graph_, NodeId{i}), ": no command runs it"));
    }
  }
  return CheckOutputs();
}

absl::Status OrderChecker::CheckOutputs() {
  const std::vector<int32_t> streams = StreamOfOutputs(program_);
  for (size_t s = 0; s < clocks_.size(); ++s) ++clocks_[s][s];  // after the last command
  for (size_t i = 0; i < streams.size(); ++i) {
    const NodeId id = program_.outputs[i].node;
    stream_ = streams[i];
    const absl::Status status =
        stream_ < 0 ? absl::InvalidArgumentError("no stream hands it back") : HandBack(id);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output ", i, ", ", NodeText(graph_, id), ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status OrderChecker::HandBack(NodeId id) {
  RETURN_IF_ERROR(owners_.CheckIntact(id));
  return log_.Read(RangeOf(program_, id), stream_, clocks_[stream_]);
}

}  // namespace

absl::Status CheckProgramOrder(const Program& program) { return OrderChecker(program).Check(); }

}  // namespace weft
