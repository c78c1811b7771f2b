// weft_weight_stream_bench FILE [ROUNDS [TRANSPORT [WORKER]]]: how fast weights are sent to a
// worker (a local one, or the one at that address), beside the raw one-way rate of the same
// transport, paired in one run; and the processor time that each takes per gigabyte. Run it on an
// idle machine.
//
// Raw is the same file, out of the same memory, in pieces of the same size with as many on their
// way, to the same worker, which drops them. A load reads and checks them besides and writes them
// to fresh memory. The raw rate of a round is the mean of one before and one after the load. (The
// probe of `weft workers` sends one message of 256 KiB over and over, which never leaves the
// processor's cache: it is printed too, and decides nothing.)
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mapped_file.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/device/device.h"
#include "common/digest/file_identity.h"
#include "common/transport/link_probe.h"
#include "coordinator/cluster/fleet.h"
#include "rpc_backend/client/remote_weights.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "tests/support/number_argument.h"

namespace weft {
namespace {

constexpr int64_t kWeightBytes = int64_t{16} << 20;
constexpr std::chrono::seconds kRawTime{600};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of a process of this machine; 0 if it is none.
double ProcessorSeconds(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string ignored;
  for (int i = 0; i < 11; ++i) fields >> ignored;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The processes that this one started.
std::vector<std::string> Children() {
  std::vector<std::string> children;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (std::string child; file >> child;) children.push_back(child);
  }
  return children;
}

// A virtual machine may give its free memory back to its host, and getting it again takes longer
// than all else. This has the system hold what a load is about to need, in the pages (huge ones)
// that a worker will ask for.
void HaveFreeMemory(size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  auto* const memory = static_cast<uint8_t*>(std::aligned_alloc(kHugePage, whole));
  if (memory == nullptr) return;
  madvise(memory, whole, MADV_HUGEPAGE);
  for (size_t at = 0; at < whole; at += kPage) {
    *static_cast<volatile uint8_t*>(memory + at) = 1;
  }
  std::free(memory);
}

class Bench {
 public:
  Bench(Fleet& fleet, const MappedFile& file)
      : fleet_(fleet), file_(file), workers_(Children()), bytes_(file.bytes().size()) {}

  absl::Status Run(bool with_digests, int rounds);

 private:
  struct Figures {
    std::vector<double> rates;  // GB/s
    double here = 0;            // processor seconds
    double there = 0;
    double bytes = 0;
  };

  std::vector<RemoteWeightItem> Items(bool with_digests) const;
  absl::StatusOr<double> Raw();
  absl::StatusOr<double> Load(const std::vector<RemoteWeightItem>& items);
  absl::StatusOr<double> Counted(Figures& figures,
                                 const std::function<absl::StatusOr<double>()>& run) const;
  double WorkerSeconds() const;
  void Print(const std::string& what, const Figures& figures) const;

  Fleet& fleet_;
  const MappedFile& file_;
  const std::vector<std::string> workers_;
  const size_t bytes_;
};

// All of the file, in weights of one size.
std::vector<RemoteWeightItem> Bench::Items(bool with_digests) const {
  std::vector<RemoteWeightItem> items;
  const auto size = static_cast<int64_t>(bytes_);
  for (int64_t at = 0; at < size; at += kWeightBytes) {
    RemoteWeightItem item;
    item.weight = static_cast<int32_t>(items.size());
    item.reserve_bytes = std::min(kWeightBytes, size - at);
    item.slices = {{0, at, item.reserve_bytes}};
    const auto bytes =
        file_.bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(item.reserve_bytes));
    for (size_t i = 0; with_digests && i < bytes.size(); i += kWeightPieceBytes) {
      item.digests.push_back(Sha256::Of(bytes.subspan(i, kWeightPieceBytes)));
    }
    items.push_back(std::move(item));
  }
  return items;
}

absl::StatusOr<double> Bench::Raw() {
  FleetLink& link = fleet_.link();
  absl::Status answered;
  std::thread answering([&] {
    proto::MeasureLinkRequest request;
    proto::MeasureLinkReply reply;
    request.set_peer(link.coordinator_number());
    request.set_timeout_ms(std::chrono::milliseconds(kRawTime).count());
    answered = link.worker(0).connection().Invoke("MeasureLink", &proto::Worker::Stub::MeasureLink,
                                                  request, reply, kRawTime);
  });
  LinkProbeOptions options;
  options.key = {.epoch = link.epoch(), .kind = static_cast<uint32_t>(MessageKind::kProbe)};
  options.bulk_bytes = kWeightPieceBytes;
  const absl::StatusOr<double> rate = MeasureStream(link.port(), 0, options, file_.bytes(),
                                                    kWeightWindow, SystemClock().Now() + kRawTime);
  answering.join();
  RETURN_IF_ERROR(answered);
  return rate;
}

absl::StatusOr<double> Bench::Load(const std::vector<RemoteWeightItem>& items) {
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(file_));
  const std::vector<RemoteWeightFile> files = {
      {file_.path(), identity.size, identity.digest.Raw(), identity.data_offset}};
  const SliceReader reader =
      [this](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
    return file_.bytes().subspan(static_cast<size_t>(slice.offset),
                                 static_cast<size_t>(slice.bytes));
  };
  LoadRemoteWeightsOptions options;
  options.ignore_files = true;
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  ASSIGN_OR_RETURN(const RemoteWeights loaded,
                   LoadRemoteWeights(fleet_.link(), 0, files, items, reader, options));
  return static_cast<double>(loaded.bytes_streamed) / SecondsSince(clock, start);
}

double Bench::WorkerSeconds() const {
  double seconds = 0;
  for (const std::string& worker : workers_) seconds += ProcessorSeconds(worker);
  return seconds;
}

absl::StatusOr<double> Bench::Counted(Figures& figures,
                                      const std::function<absl::StatusOr<double>()>& run) const {
  HaveFreeMemory(bytes_);
  const double here = ProcessorSeconds("self");
  const double there = WorkerSeconds();
  ASSIGN_OR_RETURN(const double rate, run());
  figures.here += ProcessorSeconds("self") - here;
  figures.there += WorkerSeconds() - there;
  figures.bytes += static_cast<double>(bytes_);
  figures.rates.push_back(rate / 1e9);
  // What was loaded is free again before anything else is measured.
  fleet_.link().worker(0).connection().FlushFrees();
  return rate / 1e9;
}

void Bench::Print(const std::string& what, const Figures& figures) const {
  const double gigabytes = figures.bytes / 1e9;
  std::cout << "  " << what << ": " << Median(figures.rates) << " GB/s ("
            << *std::min_element(figures.rates.begin(), figures.rates.end()) << " to "
            << *std::max_element(figures.rates.begin(), figures.rates.end())
            << "); processor seconds per GB: " << figures.here / gigabytes << " here";
  if (!workers_.empty()) {
    const double sum = (figures.here + figures.there) / gigabytes;
    std::cout << ", " << figures.there / gigabytes << " at the worker: at most "
              << AvailableProcessors() / sum << " GB/s with " << AvailableProcessors()
              << " processors";
  }
  std::cout << "\n";
}

absl::Status Bench::Run(bool with_digests, int rounds) {
  const std::vector<RemoteWeightItem> items = Items(with_digests);
  RETURN_IF_ERROR(Load(items).status());  // warms up
  Figures raw;
  Figures load;
  std::vector<double> ratio;
  for (int i = 0; i < rounds; ++i) {
    ASSIGN_OR_RETURN(const double before, Counted(raw, [this] { return Raw(); }));
    ASSIGN_OR_RETURN(const double rate, Counted(load, [&] { return Load(items); }));
    ASSIGN_OR_RETURN(const double after, Counted(raw, [this] { return Raw(); }));
    ratio.push_back(rate / ((before + after) / 2));
  }
  const std::vector<PairMeasurement> probe = fleet_.link().MeasureLinks(std::chrono::seconds(10));
  std::cout << fleet_.link().transport()
            << (with_digests ? ", digests known: " : ", digests made on the way: ") << Median(ratio)
            << " of raw (" << *std::min_element(ratio.begin(), ratio.end()) << " to "
            << *std::max_element(ratio.begin(), ratio.end()) << ", " << rounds
            << " rounds); one message over and over: " << probe[0].bytes_per_s / 1e9 << " GB/s\n";
  Print("raw", raw);
  Print("load", load);
  return absl::OkStatus();
}

absl::Status Measure(const std::string& path, int rounds, const std::string& transport,
                     const std::string& worker) {
  Logger logger("bench", LogLevel::kInfo);
  FleetOptions options;
  if (worker.empty()) {
    options.local_workers = 1;
    options.local.count = 1;
    options.local.threads = 1;
    if (const char* folder = std::getenv("WEFT_BIN_DIR")) {
      options.local.binary = std::string(folder) + "/weft-worker";
    }
  } else {
    options.workers = {worker};
    options.insecure = true;
  }
  options.transport = transport;
  ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, Fleet::Open(options, logger));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  RETURN_IF_ERROR(file->Touch(0, file->bytes().size(), [](int64_t) { return absl::OkStatus(); }));
  Bench bench(*fleet, *file);
  RETURN_IF_ERROR(bench.Run(false, rounds));
  return bench.Run(true, rounds);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::cerr << "usage: weft_weight_stream_bench FILE [ROUNDS [TRANSPORT [WORKER]]]\n";
    return 2;
  }
  const absl::Status status =
      weft::Measure(argv[1], argc > 2 ? weft::NumberArgument<int>(argv[2]) : 5,
                    argc > 3 ? argv[3] : "auto", argc > 4 ? argv[4] : "");
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
