#include "tests/support/port_rank.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/ucx/ucx_transport.h"

namespace weft {
namespace {

std::string AddressFile(const std::string& folder, int32_t rank) {
  return absl::StrCat(folder, "/rank", rank);
}

PortPeer Peer(int32_t rank) {
  PortPeer peer{.number = rank, .name = absl::StrCat("r", rank), .token = {}};
  peer.token.fill(0x5a);
  return peer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PortRank>> PortRank::Join(const PortRankOptions& options) {
  std::unique_ptr<PortRank> rank(new PortRank(options));
  RETURN_IF_ERROR(rank->Connect());
  return rank;
}

PortRank::~PortRank() {
  stop_ = true;
  if (port_ != nullptr) port_->Wake();
  if (reader_.joinable()) reader_.join();
}

absl::Status PortRank::Connect() {
  const Clock::TimePoint deadline = SystemClock().Now() + std::chrono::seconds(30);
  UcxTransportOptions ucx;
  ucx.transports = options_.transports;
  ASSIGN_OR_RETURN(transport_, NewUcxTransport(ucx));
  ASSIGN_OR_RETURN(port_, transport_->NewPort({.own_number = options_.rank, .limits = {}}));
  for (int32_t r = 0; r < options_.ranks; ++r) {
    communicator_.ranks.push_back(r == options_.rank ? CommunicatorRank{-1, 0, 0}
                                                     : CommunicatorRank{r, -1, 0});
    if (r > options_.rank) RETURN_IF_ERROR(port_->Expect(Peer(r)));
  }
  const std::string file = AddressFile(options_.folder, options_.rank);
  std::ofstream(file + ".new") << port_->address();
  if (std::rename((file + ".new").c_str(), file.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", file));
  }
  for (int32_t r = 0; r < options_.rank; ++r) {
    ASSIGN_OR_RETURN(const std::string address, AddressOf(r, deadline));
    RETURN_IF_ERROR(port_->Connect(Peer(r), address, deadline));
  }
  RETURN_IF_ERROR(port_->AwaitPeers(deadline));
  edges_ = std::make_unique<PortEdges>(*port_, 0, MessageKind::kCollective);
  runner_ = std::make_unique<CollectiveRunner>(0, CollectiveChannels{local_, edges_.get()});
  if (!options_.reader) return absl::OkStatus();
  reader_ = std::thread([this] {
    (void)port_->Receive({.kinds = KindBit(0), .patient = true}, Clock::TimePoint::max(), &stop_);
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> PortRank::AddressOf(int32_t rank, Clock::TimePoint deadline) const {
  while (SystemClock().Now() < deadline) {
    std::ifstream file(AddressFile(options_.folder, rank));
    std::string address;
    if (std::getline(file, address)) return address;
    port_->Progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " left no address"));
}

PreparedCollective& PortRank::Prepared(CollectiveAlgorithm algorithm, DType wire,
                                       int64_t elements) {
  for (const auto& known : known_) {
    if (known->algorithm == algorithm && known->wire == wire &&
        known->collective.elements == elements) {
      return known->collective;
    }
  }
  CollectiveShape shape;
  shape.algorithm = algorithm;
  shape.hosts.resize(communicator_.ranks.size());
  shape.elements = elements;
  auto known = std::make_unique<Known>();
  known->algorithm = algorithm;
  known->wire = known->collective.wire = wire;
  known->collective.communicator = &communicator_;
  known->collective.use = UseOf(algorithm);
  known->collective.id = 1;
  known->collective.rank = options_.rank;
  known->collective.rounds = std::move(MakeSchedule(shape).ranks[options_.rank]);
  known->collective.elements = known->collective.own_elements = elements;
  known_.push_back(std::move(known));
  return known_.back()->collective;
}

absl::Status PortRank::AllReduce(int64_t step, CollectiveAlgorithm algorithm, DType wire,
                                 absl::Span<float> values, Clock::TimePoint deadline) {
  step_.edge_step = step;
  step_.deadline = deadline;
  double waited = 0;
  return runner_->Run(step_, Prepared(algorithm, wire, static_cast<int64_t>(values.size())), values,
                      waited);
}

std::string PortRank::transport() {
  const std::vector<PeerTraffic> traffic = port_->traffic();
  return traffic.empty() ? "none" : traffic[0].transport;
}

}  // namespace weft
