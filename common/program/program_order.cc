// The order of a program's commands: which of them is certain to have finished when another runs.
//
// The streams are played in any order that their events allow. Each stream carries a clock with one
// entry per stream: the last command of that stream that is certain to have finished (Lamport 1978,
// Mattern 1989: vector clocks). Position 0 of a stream is its preamble, in which a step fills its
// inputs, page tables and copied pages; command i is position i + 1.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
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
  absl::Status Compute(const ComputeCommand& command);
  absl::Status Copy(const CopyCommand& command);
  absl::Status Record(const RecordCommand& command);
  absl::StatusOr<bool> Wait(const WaitCommand& command);

  absl::Status CheckNodeId(NodeId id) const;
  // Marks `id` as listed; an error the second time.
  absl::Status ListOnce(NodeId id);
  // `id` is executed here and now: its sources are ready, its memory belongs to this stream.
  absl::Status Produce(NodeId id);
  absl::Status CheckReadable(NodeId id) const;
  absl::Status CheckWritable(NodeId id) const;
  absl::Status CheckFinished() const;
  int32_t HomeStream(NodeId id) const {
    return stream_of_[program_.slots[program_.places[Index(id)].slot].device];
  }

  const Program& program_;
  const Graph& graph_;
  const std::vector<int32_t> stream_of_;
  std::vector<NodeId> definer_;  // the leaf or executed node that a view shows
  std::vector<bool> listed_;
  std::vector<Producer> producers_;
  std::vector<VectorClock> clocks_;                   // per stream
  std::vector<std::optional<VectorClock>> recorded_;  // per event
  std::vector<std::vector<int32_t>> waiting_;         // streams per event
  std::vector<int32_t> next_;                         // next command per stream
  std::vector<int32_t> runnable_;
  MemoryOwners owners_;
  int32_t stream_ = 0;  // being played
};

OrderChecker::OrderChecker(const Program& program)
    : program_(program),
      graph_(program.graph),
      stream_of_(StreamOfDevice(program)),
      listed_(graph_.nodes().size()),
      producers_(graph_.nodes().size()),
      recorded_(program.event_count),
      waiting_(program.event_count),
      next_(program.streams.size()),
      owners_(program) {
  definer_.reserve(graph_.nodes().size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(NodeId{i});
    const bool view = GetOpInfo(node.op).is_view;
    definer_.push_back(view ? definer_[Index(node.sources[0])] : NodeId{i});
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
  if (const auto* wait = std::get_if<WaitCommand>(&command)) return Wait(*wait);
  if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
    RETURN_IF_ERROR(Compute(*compute));
  } else if (const auto* copy = std::get_if<CopyCommand>(&command)) {
    RETURN_IF_ERROR(Copy(*copy));
  } else {
    RETURN_IF_ERROR(Record(std::get<RecordCommand>(command)));
  }
  return true;
}

absl::Status OrderChecker::CheckNodeId(NodeId id) const {
  if (Index(id) >= 0 && Index(id) < graph_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no node ", Index(id)));
}

absl::Status OrderChecker::ListOnce(NodeId id) {
  RETURN_IF_ERROR(CheckNodeId(id));
  if (listed_[Index(id)]) {
    return absl::InvalidArgumentError(absl::StrCat(NodeText(graph_, id), " is listed twice"));
  }
  listed_[Index(id)] = true;
  return absl::OkStatus();
}

absl::Status OrderChecker::Compute(const ComputeCommand& command) {
  for (const NodeId id : command.nodes) {
    RETURN_IF_ERROR(ListOnce(id));
    if (!graph_.Executes(id)) continue;
    const absl::Status status = Produce(id);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(NodeText(graph_, id), ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status OrderChecker::Copy(const CopyCommand& command) {
  RETURN_IF_ERROR(ListOnce(command.node));
  const Node& node = graph_.node(command.node);
  if (node.op != Op::kCopy) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), " is not a copy"));
  }
  const NodeId source = node.sources[0];
  if (graph_.layout(source).dtype != node.layout.dtype || !IsContiguous(graph_.layout(source))) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), " does more than move bytes"));
  }
  if (command.source != program_.places[Index(source)] ||
      command.destination != program_.places[Index(command.node)] ||
      command.bytes != *ByteExtent(node.layout)) {
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph_, command.node), ": its places or size are others"));
  }
  absl::Status status = Produce(command.node);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(NodeText(graph_, command.node), ": ", status.message()));
}

absl::Status OrderChecker::Record(const RecordCommand& command) {
  if (command.event < 0 || command.event >= program_.event_count) {
    return absl::InvalidArgumentError(absl::StrCat("no event ", command.event));
  }
  if (recorded_[command.event]) {
    return absl::InvalidArgumentError(absl::StrCat("event ", command.event, " is recorded twice"));
  }
  recorded_[command.event] = clocks_[stream_];
  std::vector<int32_t>& woken = waiting_[command.event];
  runnable_.insert(runnable_.end(), woken.begin(), woken.end());
  woken.clear();
  return absl::OkStatus();
}

absl::StatusOr<bool> OrderChecker::Wait(const WaitCommand& command) {
  if (command.event < 0 || command.event >= program_.event_count) {
    return absl::InvalidArgumentError(absl::StrCat("no event ", command.event));
  }
  if (!recorded_[command.event]) {
    waiting_[command.event].push_back(stream_);
    return false;
  }
  VectorClock& clock = clocks_[stream_];
  const VectorClock& seen = *recorded_[command.event];
  for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], seen[s]);
  return true;
}

absl::Status OrderChecker::Produce(NodeId id) {
  const VectorClock& clock = clocks_[stream_];
  for (const NodeId source : graph_.node(id).sources) {
    RETURN_IF_ERROR(CheckReadable(source));
    const absl::Status intact = owners_.Read(source, stream_, clock[stream_]);
    if (!intact.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("source ", Index(source), " ", intact.message()));
    }
  }
  RETURN_IF_ERROR(CheckWritable(id));
  RETURN_IF_ERROR(owners_.Write(id, clock));
  producers_[Index(id)] = {stream_, clock[stream_]};
  return absl::OkStatus();
}

absl::Status OrderChecker::CheckReadable(NodeId id) const {
  if (program_.places[Index(id)].slot < 0) {
    return absl::InvalidArgumentError(absl::StrCat("source ", Index(id), " has no memory"));
  }
  const NodeId definer = definer_[Index(id)];
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
      "source ", Index(id), " is not certain to be written",
      producer.stream == kUnknown ? "" : absl::StrCat(" by stream ", producer.stream)));
}

absl::Status OrderChecker::CheckWritable(NodeId id) const {
  if (HomeStream(id) != stream_) {
    return absl::InvalidArgumentError("writes memory of another device");
  }
  const SlotKind kind = program_.slots[program_.places[Index(id)].slot].kind;
  if (kind != SlotKind::kArena && kind != SlotKind::kCache) {
    return absl::InvalidArgumentError("writes a weight, an input or a page table");
  }
  return absl::OkStatus();
}

absl::Status OrderChecker::CheckFinished() const {
  for (size_t s = 0; s < next_.size(); ++s) {
    const std::vector<Command>& commands = program_.streams[s].commands;
    if (next_[s] == static_cast<int64_t>(commands.size())) continue;
    return absl::InvalidArgumentError(absl::StrCat("stream ", s, ", command ", next_[s],
                                                   ": waits for event ",
                                                   std::get<WaitCommand>(commands[next_[s]]).event,
                                                   ", which is recorded never or only after this"));
  }
  for (int32_t i = 0; i < graph_.size(); ++i) {
    if (graph_.Executes(NodeId{i}) && producers_[i].stream == kUnknown) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeText(graph_, NodeId{i}), ": no command runs it"));
    }
  }
  for (const ProgramOutput& output : program_.outputs) {
    const absl::Status intact = owners_.CheckIntact(output.node);
    if (intact.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output, ", NodeText(graph_, output.node), ": ", intact.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProgramOrder(const Program& program) { return OrderChecker(program).Check(); }

}  // namespace weft
