// weft_weight_stream_bench FILE [ROUNDS [TRANSPORT]]: how fast weights are sent to a local worker,
// beside the raw one-way rate of the same transport, paired in one run. The rate of a round is that
// of the probe of `weft workers`, taken before and after the load, whose mean counts. Run it on an
// idle machine.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/digest/file_identity.h"
#include "coordinator/cluster/fleet.h"
#include "rpc_backend/client/remote_weights.h"
#include "rpc_backend/protocol/weight_pieces.h"

namespace weft {
namespace {

constexpr int64_t kWeightBytes = int64_t{16} << 20;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// All of the file, in weights of one size.
std::vector<RemoteWeightItem> ItemsOf(const MappedFile& file, bool with_digests) {
  std::vector<RemoteWeightItem> items;
  const auto size = static_cast<int64_t>(file.bytes().size());
  for (int64_t at = 0; at < size; at += kWeightBytes) {
    RemoteWeightItem item;
    item.weight = static_cast<int32_t>(items.size());
    item.reserve_bytes = std::min(kWeightBytes, size - at);
    item.slices = {{0, at, item.reserve_bytes}};
    const auto bytes =
        file.bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(item.reserve_bytes));
    for (size_t i = 0; with_digests && i < bytes.size(); i += kWeightPieceBytes) {
      item.digests.push_back(Sha256::Of(bytes.subspan(i, kWeightPieceBytes)));
    }
    items.push_back(std::move(item));
  }
  return items;
}

absl::StatusOr<double> RawRate(Fleet& fleet) {
  for (const PairMeasurement& pair : fleet.link().MeasureLinks(std::chrono::seconds(10))) {
    RETURN_IF_ERROR(pair.status);
    return pair.bytes_per_s;
  }
  return absl::InternalError("no link");
}

absl::StatusOr<double> LoadRate(Fleet& fleet, const MappedFile& file,
                                const std::vector<RemoteWeightItem>& items) {
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentifyGguf(file));
  const std::vector<RemoteWeightFile> files = {
      {file.path(), identity.size, identity.digest.Raw(), identity.data_offset}};
  const SliceReader reader =
      [&file](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
    return file.bytes().subspan(static_cast<size_t>(slice.offset),
                                static_cast<size_t>(slice.bytes));
  };
  LoadRemoteWeightsOptions options;
  options.ignore_files = true;
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  ASSIGN_OR_RETURN(const RemoteWeights loaded,
                   LoadRemoteWeights(fleet.link(), 0, files, items, reader, options));
  return static_cast<double>(loaded.bytes_streamed) / SecondsSince(clock, start);
}

absl::Status Measure(const std::string& path, int rounds, const std::string& transport) {
  Logger logger("bench", LogLevel::kInfo);
  FleetOptions options;
  options.local_workers = 1;
  options.local.count = 1;
  options.local.threads = 1;
  if (const char* folder = std::getenv("WEFT_BIN_DIR")) {
    options.local.binary = std::string(folder) + "/weft-worker";
  }
  options.transport = transport;
  ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, Fleet::Open(options, logger));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  RETURN_IF_ERROR(file->Touch(0, file->bytes().size(), [](int64_t) { return absl::OkStatus(); }));
  for (const bool with_digests : {false, true}) {
    const std::vector<RemoteWeightItem> items = ItemsOf(*file, with_digests);
    RETURN_IF_ERROR(LoadRate(*fleet, *file, items).status());  // warms up
    std::vector<double> raw;
    std::vector<double> load;
    std::vector<double> ratio;
    for (int i = 0; i < rounds; ++i) {
      ASSIGN_OR_RETURN(const double before, RawRate(*fleet));
      ASSIGN_OR_RETURN(const double rate, LoadRate(*fleet, *file, items));
      ASSIGN_OR_RETURN(const double after, RawRate(*fleet));
      raw.push_back((before + after) / 2 / 1e9);
      load.push_back(rate / 1e9);
      ratio.push_back(load.back() / raw.back());
    }
    std::cout << fleet->link().transport()
              << (with_digests ? ", digests known: " : ", digests made on the way: ")
              << Median(load) << " GB/s, raw " << Median(raw) << " GB/s, ratio " << Median(ratio)
              << " (" << *std::min_element(ratio.begin(), ratio.end()) << " to "
              << *std::max_element(ratio.begin(), ratio.end()) << ", " << rounds << " rounds)\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::cerr << "usage: weft_weight_stream_bench FILE [ROUNDS [TRANSPORT]]\n";
    return 2;
  }
  const absl::Status status =
      weft::Measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 5, argc > 3 ? argv[3] : "auto");
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
