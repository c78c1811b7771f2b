// Collectives of a program: what each command says, and whether all ranks say the same.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

absl::Status Bad(const absl::AlphaNum& why) {
  return absl::InvalidArgumentError(absl::StrCat(why));
}

class CollectiveChecker {
 public:
  CollectiveChecker(const Program& program, const ProgramLimits& limits)
      : program_(program), graph_(program.graph), limits_(limits) {}

  absl::Status Check() {
    for (size_t s = 0; s < program_.streams.size(); ++s) {
      const Stream& stream = program_.streams[s];
      for (size_t i = 0; i < stream.commands.size(); ++i) {
        const auto* command = std::get_if<CollectiveCommand>(&stream.commands[i]);
        if (command == nullptr) continue;
        const absl::Status status = CheckCommand(*command, stream.device);
        if (status.ok()) continue;
        return Bad(absl::StrCat("stream ", s, ", command ", i, ": ", status.message()));
      }
    }
    return CheckOrder();
  }

 private:
  absl::Status At(NodeId id, const absl::AlphaNum& why) const {
    return Bad(absl::StrCat(NodeText(graph_, id), why));
  }

  absl::Status CheckCommand(const CollectiveCommand& command, int32_t device) {
    const NodeId id = command.node;
    const Node& node = graph_.node(id);
    const CollectiveKey* key = CollectiveKeyOf(node);
    if (key == nullptr) return At(id, " is no collective");
    if (key->communicator >= static_cast<int64_t>(program_.communicators.size())) {
      return At(id, absl::StrCat(": no communicator ", key->communicator));
    }
    if (static_cast<int>(command.algorithm) >= kCollectiveAlgorithmCount) {
      return At(id, ": unknown algorithm");
    }
    const ProgramCommunicator& communicator = program_.communicators[key->communicator];
    const int32_t rank = RankOfDevice(communicator, device);
    if (rank < 0) {
      return At(
          id, absl::StrCat(": device ", device, " is no rank of communicator ", key->communicator));
    }
    RETURN_IF_ERROR(CheckMemory(command));
    RETURN_IF_ERROR(CheckPart(id, communicator, rank));
    std::vector<int32_t>& ids = order_[{key->communicator, rank}];
    if (!seen_.emplace(key->id, device).second) {
      return At(id, absl::StrCat(": collective ", key->id, " is performed twice"));
    }
    ids.push_back(key->id);
    const auto [first, fresh] = first_of_.emplace(key->id, &command);
    if (fresh) return absl::OkStatus();
    const Node& other = graph_.node(first->second->node);
    if (other.op != node.op || other.attributes != node.attributes || other.layout != node.layout ||
        first->second->algorithm != command.algorithm) {
      return At(id, absl::StrCat(" differs from ", NodeText(graph_, first->second->node),
                                 ", which is the same collective on another rank"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMemory(const CollectiveCommand& command) {
    const NodeId id = command.node;
    const Node& node = graph_.node(id);
    const SlotPlace source =
        node.sources.empty() ? SlotPlace{} : program_.places[Index(node.sources[0])];
    const SlotPlace& destination = program_.places[Index(id)];
    if (command.source != source || command.destination != destination ||
        command.bytes != *ByteExtent(node.layout)) {
      return At(id, ": its places or size are others");
    }
    if (destination.slot < 0 || (!node.sources.empty() && source.slot < 0)) {
      return At(id, " has no memory");
    }
    if (!node.sources.empty() && program_.slots[source.slot].kind == SlotKind::kWeight) {
      return At(id, " is of a weight");
    }
    if (command.bytes > limits_.step_edge_bytes - bytes_) {
      return At(id, ": the collectives carry too much");
    }
    bytes_ += command.bytes;
    return absl::OkStatus();
  }

  // An all_gather's source is the part of its rank.
  absl::Status CheckPart(NodeId id, const ProgramCommunicator& communicator, int32_t rank) const {
    const Node& node = graph_.node(id);
    const auto* gather = std::get_if<AllGatherAttributes>(&node.attributes);
    if (gather == nullptr) return absl::OkStatus();
    if (gather->counts.size() != communicator.ranks.size()) {
      return At(id, absl::StrCat(": parts of ", gather->counts.size(), " ranks, there are ",
                                 communicator.ranks.size()));
    }
    Extents want = gather->ne;
    want[gather->axis] = gather->counts[rank];
    const bool empty = gather->counts[rank] == 0;
    if (node.sources.empty() ? empty : graph_.layout(node.sources[0]).ne == want) {
      return absl::OkStatus();
    }
    return At(id, absl::StrCat(": its source is not the part of rank ", rank));
  }

  // Each rank that is here performs all of its communicator's, in one order.
  absl::Status CheckOrder() const {
    for (size_t c = 0; c < program_.communicators.size(); ++c) {
      const std::vector<int32_t>* first = nullptr;
      int32_t first_rank = 0;
      const ProgramCommunicator& communicator = program_.communicators[c];
      for (size_t r = 0; r < communicator.ranks.size(); ++r) {
        if (communicator.ranks[r].process != -1) continue;
        const auto found = order_.find({static_cast<int32_t>(c), static_cast<int32_t>(r)});
        static const std::vector<int32_t> kNone;
        const std::vector<int32_t>& ids = found == order_.end() ? kNone : found->second;
        if (first == nullptr) {
          first = &ids;
          first_rank = static_cast<int32_t>(r);
        } else if (*first != ids) {
          return Bad(absl::StrCat("communicator ", c, ": ranks ", first_rank, " and ", r,
                                  " perform other collectives or in another order"));
        }
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const Graph& graph_;
  const ProgramLimits& limits_;
  std::set<std::pair<int32_t, int32_t>> seen_;                         // collective, device
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> order_;  // by communicator and rank
  std::map<int32_t, const CollectiveCommand*> first_of_;               // by collective
  int64_t bytes_ = 0;
};

}  // namespace

absl::Status CheckProgramCollectives(const Program& program, const ProgramLimits& limits) {
  return CollectiveChecker(program, limits).Check();
}

}  // namespace weft
