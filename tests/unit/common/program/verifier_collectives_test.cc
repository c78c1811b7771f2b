// Hostile programs whose devices are ranks.
#include <algorithm>

#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/collective_program.h"
#include "tests/unit/common/program/hostile_program.h"

namespace weft {
namespace {

// Ranks 0 and 2 here, rank 1 in process 3. Streams: [compute term, all_reduce, compute result and
// part, all_gather].
Program Ranked() {
  RankedProgramOptions options;
  options.process_of_rank = {0, 3, 0};
  options.counts = {2, 1, 0};
  return RankedProgram(options);
}

CollectiveCommand& Reduce(Program& program, int stream) {
  return First<CollectiveCommand>(program, stream);
}
CollectiveCommand& Gather(Program& program, int stream) {
  for (Command& command : Commands(program, stream)) {
    auto* collective = std::get_if<CollectiveCommand>(&command);
    if (collective != nullptr && program.graph.node(collective->node).op == Op::kAllGather) {
      return *collective;
    }
  }
  CheckFailed(__FILE__, __LINE__, "an all_gather");
}
AllGatherAttributes& GatherAttributes(Program& program, const char* name) {
  Node& node = program.graph.mutable_node(Named(program, name));
  return std::get<AllGatherAttributes>(node.attributes);
}
CommunicatorRank& Rank(Program& program, size_t rank) {
  return program.communicators[0].ranks[rank];
}
// The positions of the two collectives of a stream.
std::pair<size_t, size_t> CollectivesOf(Program& program, int stream) {
  std::vector<size_t> found;
  for (size_t i = 0; i < Commands(program, stream).size(); ++i) {
    if (std::holds_alternative<CollectiveCommand>(Commands(program, stream)[i])) found.push_back(i);
  }
  return {found.at(0), found.at(1)};
}

constexpr HostileCase kCommunicators[] = {
    {"no rank", [](Program& p) { p.communicators.push_back({}); }, "communicator 1: 0 ranks"},
    {"many", [](Program& p) { p.communicators.resize(65, p.communicators[0]); },
     "65 communicators"},
    {"many ranks",
     [](Program& p) {
       p.communicators[0].ranks.resize(257, {3, -1, 0});
     },
     "257 ranks"},
    {"device outside", [](Program& p) { Rank(p, 0).device = 2; }, "rank 0 on device 2"},
    {"no device", [](Program& p) { Rank(p, 0).device = -1; }, "rank 0 on device -1"},
    {"two ranks on one device", [](Program& p) { Rank(p, 0).device = 1; }, "device 1 is two ranks"},
    {"a device elsewhere", [](Program& p) { Rank(p, 1).device = 0; }, "rank 1 on device 0"},
    {"process beyond the limit", [](Program& p) { Rank(p, 1).process = 4096; }, "process 4096"},
    {"negative process", [](Program& p) { Rank(p, 1).process = -2; }, "process -2"},
    {"negative host", [](Program& p) { Rank(p, 1).host = -1; }, "host -1"},
    {"another host", [](Program& p) { Rank(p, 1).host = 77; }, nullptr},
    {"a device that is no rank",
     [](Program& p) {
       Rank(p, 0) = {5, -1, 0};
     },
     "device 0 is no rank of communicator 0"},
    {"no communicator", [](Program& p) { p.communicators.clear(); }, "no communicator 0"},
};

constexpr HostileCase kCommands[] = {
    {"no node", [](Program& p) { Reduce(p, 0).node = NodeId{99}; }, "no node 99"},
    {"no collective", [](Program& p) { Reduce(p, 0).node = Named(p, "term 0"); },
     "is listed twice"},
    {"computed",
     [](Program& p) {
       const NodeId sum = Reduce(p, 0).node;
       Commands(p, 0)[CollectivesOf(p, 0).first] = ComputeCommand{{sum}};
     },
     "is computed by no device"},
    {"place of the source", [](Program& p) { Reduce(p, 0).source.offset += 64; },
     "its places or size are others"},
    {"place of the result",
     [](Program& p) {
       Reduce(p, 0).destination = {0, 0};
     },
     "its places or size are others"},
    {"size", [](Program& p) { ++Reduce(p, 0).bytes; }, "its places or size are others"},
    {"unknown algorithm",
     [](Program& p) { Reduce(p, 0).algorithm = static_cast<CollectiveAlgorithm>(4); },
     "unknown algorithm"},
    {"ranks of two algorithms",
     [](Program& p) { Reduce(p, 1).algorithm = CollectiveAlgorithm::kByParts; },
     "differs from node"},
    {"ranks of two wires",
     [](Program& p) {
       std::get<AllReduceAttributes>(p.graph.mutable_node(Reduce(p, 1).node).attributes).wire =
           DType::kBF16;
     },
     "differs from node"},
    {"only one rank's", [](Program& p) { Drop<CollectiveCommand>(p, 1); },
     "ranks 0 and 2 perform other collectives"},
    {"twice", [](Program& p) { Commands(p, 0).emplace_back(CollectiveCommand(Reduce(p, 0))); },
     "is listed twice"},
    {"another order on one rank",
     [](Program& p) {
       const auto [a, b] = CollectivesOf(p, 1);
       std::swap(Commands(p, 1)[a], Commands(p, 1)[b]);
     },
     "ranks 0 and 2 perform other collectives"},
    {"before its source",
     [](Program& p) {
       for (const int s : {0, 1}) {
         const CollectiveCommand reduce = Reduce(p, s);
         Commands(p, s).erase(Commands(p, s).begin() + CollectivesOf(p, s).first);
         Commands(p, s).insert(Commands(p, s).begin(), reduce);
       }
     },
     "is not certain to be written"},
    {"a circle of waits",
     [](Program& p) {
       // Rank 0 goes on only after what rank 2 does behind their collective.
       p.event_count = 1;
       Commands(p, 0).insert(Commands(p, 0).begin(), WaitCommand{0});
       Commands(p, 1).emplace_back(RecordCommand{0});
     },
     "waits for"},
    {"parts of other ranks", [](Program& p) { Gather(p, 0).node = Gather(p, 1).node; },
     "is listed twice"},
};

constexpr HostileCase kGathers[] = {
    {"counts of fewer ranks",
     [](Program& p) {
       for (const char* name : {"all 0", "all 2"}) GatherAttributes(p, name).counts = {2, 1};
     },
     "parts of 2 ranks, there are 3"},
    {"another rank's part",
     [](Program& p) {
       for (const char* name : {"all 0", "all 2"}) GatherAttributes(p, name).counts = {1, 2, 0};
     },
     "its source is not the part of rank 0"},
    {"no source where there is a part",
     [](Program& p) {
       for (const char* name : {"all 0", "all 2"}) GatherAttributes(p, name).counts = {2, 0, 1};
     },
     "its source is not the part of rank 2"},
    {"not the sum",
     [](Program& p) {
       GatherAttributes(p, "all 0").counts = {2, 2, 0};
     },
     "parts of 4 together"},
    {"negative",
     [](Program& p) {
       GatherAttributes(p, "all 0").counts = {2, 2, -1};
     },
     "a part of -1"},
};

// The same, detached. Streams: [compute term, begin all_reduce, compute part, finish all_reduce,
// compute result, begin all_gather, finish all_gather].
Program Detached() {
  RankedProgramOptions options;
  options.process_of_rank = {0, 3, 0};
  options.counts = {2, 1, 1};
  options.detached = true;
  return RankedProgram(options);
}

// The position of the first command of that type.
template <typename T>
std::vector<Command>::iterator At(Program& program, int stream) {
  std::vector<Command>& commands = Commands(program, stream);
  return std::find_if(commands.begin(), commands.end(),
                      [](const Command& command) { return std::holds_alternative<T>(command); });
}
// Moves the first finish of a stream to its end.
void FinishLast(Program& program, int stream) {
  const FinishCommand finish = First<FinishCommand>(program, stream);
  Commands(program, stream).erase(At<FinishCommand>(program, stream));
  Commands(program, stream).emplace_back(finish);
}

// The part of rank 0 to where `other` lies.
void MovePart(Program& program, const char* other) {
  PlaceOf(program, "part 0") = PlaceOf(program, other);
  Gather(program, 0).source = PlaceOf(program, other);
}

constexpr HostileCase kDetached[] = {
    {"as it is", [](Program&) {}, nullptr},
    {"never finished", [](Program& p) { Drop<FinishCommand>(p, 0); }, "is never finished"},
    {"finished before it begins",
     [](Program& p) {
       const FinishCommand finish = First<FinishCommand>(p, 0);
       Commands(p, 0).erase(At<FinishCommand>(p, 0));
       Commands(p, 0).insert(Commands(p, 0).begin(), finish);
     },
     "is no collective under way"},
    {"finished twice",
     [](Program& p) { Commands(p, 0).emplace_back(FinishCommand(First<FinishCommand>(p, 0))); },
     "is no collective under way"},
    {"finished by another stream",
     [](Program& p) {
       Commands(p, 1).insert(At<FinishCommand>(p, 1), FinishCommand(First<FinishCommand>(p, 0)));
     },
     "is no collective under way"},
    {"what was never begun", [](Program& p) { Reduce(p, 0).detached = false; },
     "is no collective under way"},
    {"no node", [](Program& p) { First<FinishCommand>(p, 0).node = NodeId{-1}; }, "no node -1"},
    {"its result read before", [](Program& p) { FinishLast(p, 0); },
     "is not certain to be written"},
    {"its result written before", [](Program& p) { MovePart(p, "sum 0"); },
     "may still write there"},
    {"its source written over", [](Program& p) { MovePart(p, "term 0"); }, "may still read there"},
    {"a circle of waits",
     [](Program& p) {
       // Rank 0 begins only after rank 2 has finished.
       p.event_count = 1;
       Commands(p, 0).insert(Commands(p, 0).begin(), WaitCommand{0});
       Commands(p, 1).insert(At<FinishCommand>(p, 1) + 1, RecordCommand{0});
     },
     "waits for"},
    {"others wait for what comes before the end",
     [](Program& p) {
       // Rank 0 begins only after rank 2 has begun.
       p.event_count = 1;
       Commands(p, 0).insert(Commands(p, 0).begin(), WaitCommand{0});
       Commands(p, 1).insert(At<FinishCommand>(p, 1), RecordCommand{0});
     },
     nullptr},
};

TEST(VerifierCollectives, Detached) { CheckHostile(Detached, kDetached); }
TEST(VerifierCollectives, Communicators) { CheckHostile(Ranked, kCommunicators); }
TEST(VerifierCollectives, Commands) { CheckHostile(Ranked, kCommands); }
TEST(VerifierCollectives, Gathers) { CheckHostile(Ranked, kGathers); }

}  // namespace
}  // namespace weft
