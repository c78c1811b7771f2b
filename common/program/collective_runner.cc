#include "common/program/collective_runner.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/collectives/wire_format.h"
#include "common/program/program_checks.h"
#include "common/program/step.h"

namespace weft {
namespace {

static_assert(kMaxRanks == kMaxCommunicatorRanks && kMaxCollectives == kMaxCollectiveIds);

// A rank that waits for one beside it gives up a little later than that one, whose own error names
// the process that did not come.
constexpr std::chrono::milliseconds kWaitBeside{250};

Clock::TimePoint DeadlineBeside(Clock::TimePoint deadline) {
  return deadline > Clock::TimePoint::max() - kWaitBeside ? deadline : deadline + kWaitBeside;
}

// One rank's link during one collective of a step.
class ProgramLink final : public RankLink {
 public:
  ProgramLink(const CollectiveChannels& channels, const PreparedCollective& collective,
              int32_t device, const Clock& clock)
      : channels_(channels), collective_(collective), device_(device), clock_(clock) {}

  double waited_seconds() const { return waited_seconds_; }
  int64_t local_bytes() const { return local_bytes_; }

  absl::Status Send(const CollectiveCall& call, int32_t to, int32_t number,
                    absl::Span<const uint8_t> bytes) override {
    const CommunicatorRank& rank = collective_.communicator->ranks[to];
    const int32_t id = CollectiveMessageId(call.id, number, collective_.rank, to);
    if (rank.process == -1) local_bytes_ += static_cast<int64_t>(bytes.size());
    const absl::Status status = rank.process == -1
                                    ? channels_.local.Send(rank.device, {call.step, id}, bytes)
                                    : channels_.port->Send(call.step, id, rank.process, bytes);
    return status.ok() ? status : InContext("to", to, status);
  }

  absl::Status Receive(const CollectiveCall& call, int32_t from, int32_t number, int64_t bytes,
                       TakeBytes take) override {
    const CommunicatorRank& rank = collective_.communicator->ranks[from];
    const int32_t id = CollectiveMessageId(call.id, number, from, collective_.rank);
    const Clock::TimePoint start = clock_.Now();
    const auto taken = [&](absl::Span<const uint8_t> message) {
      waited_seconds_ += SecondsSince(clock_, start);
      take(message);
    };
    const absl::Status status =
        rank.process == -1
            ? channels_.local.Receive(device_, {call.step, id}, bytes,
                                      DeadlineBeside(call.deadline), call.stop, taken)
            : channels_.port->Take(call.step, id, rank.process, bytes, taken, call.deadline,
                                   *call.stop);
    return status.ok() ? status : InContext("from", from, status);
  }

  void Abort(absl::Status /*reason*/) override {}  // steps are stopped as a whole

 private:
  absl::Status InContext(const char* direction, int32_t rank, const absl::Status& status) const {
    const CommunicatorRank& other = collective_.communicator->ranks[rank];
    const std::string where = other.process == -1 ? absl::StrCat("device ", other.device)
                                                  : absl::StrCat("process ", other.process);
    return absl::Status(status.code(), absl::StrCat("collective ", collective_.id, ", rank ",
                                                    collective_.rank, " ", direction, " rank ",
                                                    rank, " (", where, "): ", status.message()));
  }

  const CollectiveChannels& channels_;
  const PreparedCollective& collective_;
  const int32_t device_;
  const Clock& clock_;
  double waited_seconds_ = 0;
  int64_t local_bytes_ = 0;
};

// Elements of a row of an all_gather for each index of its axis, and rows.
struct GatherRows {
  int64_t inner = 1;
  int64_t rows = 1;
};
GatherRows RowsOf(const AllGatherAttributes& gather) {
  GatherRows rows;
  for (int i = 0; i < 4; ++i) {
    if (i < gather.axis) rows.inner *= gather.ne[i];
    if (i > gather.axis) rows.rows *= gather.ne[i];
  }
  return rows;
}

}  // namespace

CollectiveShape CollectiveShapeOf(const Node& node, CollectiveAlgorithm algorithm,
                                  std::vector<int32_t> hosts) {
  CollectiveShape shape;
  shape.algorithm = algorithm;
  shape.hosts = std::move(hosts);
  const auto* gather = std::get_if<AllGatherAttributes>(&node.attributes);
  if (gather == nullptr) {
    shape.kind = CollectiveKind::kAllReduce;
    shape.elements = ElementCount(node.layout);
    return shape;
  }
  shape.kind = CollectiveKind::kAllGather;
  const GatherRows rows = RowsOf(*gather);
  for (const int64_t count : gather->counts) {
    shape.counts.push_back(count * rows.inner * rows.rows);
  }
  return shape;
}

DType CollectiveWireOf(const Node& node) {
  const auto* gather = std::get_if<AllGatherAttributes>(&node.attributes);
  return gather != nullptr ? gather->wire : std::get<AllReduceAttributes>(node.attributes).wire;
}

std::unique_ptr<const PreparedCollective> PrepareCollective(const Program& program,
                                                            const CollectiveCommand& command,
                                                            int32_t device) {
  const Node& node = program.graph.node(command.node);
  const CollectiveKey& key = *CollectiveKeyOf(node);
  auto collective = std::make_unique<PreparedCollective>();
  collective->communicator = &program.communicators[key.communicator];
  collective->id = key.id;
  collective->rank = RankOfDevice(*collective->communicator, device);
  collective->elements = ElementCount(node.layout);
  collective->wire = CollectiveWireOf(node);
  std::vector<int32_t> hosts;
  for (const CommunicatorRank& rank : collective->communicator->ranks) hosts.push_back(rank.host);
  const CollectiveShape shape = CollectiveShapeOf(node, command.algorithm, std::move(hosts));
  collective->own_elements = collective->elements;
  collective->use = UseOf(command.algorithm);
  if (const auto* gather = std::get_if<AllGatherAttributes>(&node.attributes)) {
    const GatherRows rows = RowsOf(*gather);
    collective->rows = rows.rows;
    collective->use = CollectiveUse::kAllGather;
    for (const int64_t count : gather->counts) collective->widths.push_back(count * rows.inner);
    for (int32_t r = 0; r < collective->rank; ++r) collective->own_begin += shape.counts[r];
    collective->own_elements = shape.counts[collective->rank];
  }
  collective->rounds = std::move(MakeSchedule(shape).ranks[collective->rank]);
  return collective;
}

void JoinParts(const PreparedCollective& collective, absl::Span<const float> vector,
               float* result) {
  const float* part = vector.data();
  int64_t row_elements = 0;
  for (const int64_t width : collective.widths) row_elements += width;
  for (const int64_t width : collective.widths) {
    for (int64_t row = 0; row < collective.rows; ++row) {
      std::copy_n(part, width, result + row * row_elements);
      part += width;
    }
    result += width;
  }
}

absl::Status CollectiveRunner::Run(const Step& step, const PreparedCollective& collective,
                                   absl::Span<float> vector, double& waited) {
  const Clock::TimePoint start = clock_.Now();
  ProgramLink link(channels_, collective, device_, clock_);
  const CollectiveCall call{step.edge_step, collective.id, step.deadline, &step.stop};
  absl::Status status = RunRounds(collective.rounds, collective.wire, vector, link, call, scratch_);
  waited += link.waited_seconds();
  if (status.ok() && channels_.meter != nullptr) {
    channels_.meter->Add(collective.use, WireBytes(collective.wire, collective.elements),
                         SecondsSince(clock_, start), link.local_bytes());
  }
  return status;
}

}  // namespace weft
