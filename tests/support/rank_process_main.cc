// A rank that is a process: joins the others, then all-reduces until something fails, prints the
// error and waits for its input to end. For tests that kill and stop ranks.
//
//   weft-rank-process RANK RANKS FOLDER DEADLINE_MS    prints "ready", "error ...", and for every
//   line it reads then the processor time that it used, in ms
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/number_argument.h"
#include "tests/support/port_rank.h"

namespace weft {
namespace {

int64_t CpuMilliseconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) { return time.tv_sec * 1000 + time.tv_usec / 1000; };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

int Run(const PortRankOptions& options, std::chrono::milliseconds deadline) {
  absl::StatusOr<std::unique_ptr<PortRank>> rank = PortRank::Join(options);
  if (!rank.ok()) {
    std::cout << "error " << rank.status().message() << '\n' << std::flush;
    return 1;
  }
  std::cout << "ready\n" << std::flush;
  std::vector<float> values(2048);
  absl::Status status;
  for (int64_t step = 1; status.ok(); ++step) {
    std::fill(values.begin(), values.end(), static_cast<float>(options.rank + 1));
    status = (*rank)->AllReduce(step, CollectiveAlgorithm::kRecursiveDoubling, DType::kF32,
                                absl::MakeSpan(values), SystemClock().Now() + deadline);
    const int64_t whole = int64_t{options.ranks} * (options.ranks + 1) / 2;
    const auto sum = static_cast<float>(whole);
    if (status.ok() && values.back() != sum) status = absl::InternalError("a wrong sum");
  }
  std::cout << "error " << status.message() << '\n' << std::flush;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << CpuMilliseconds() << '\n' << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  weft::PortRankOptions options;
  options.rank = weft::NumberArgument<int>(argv[1]);
  options.ranks = weft::NumberArgument<int>(argv[2]);
  options.folder = argv[3];
  return weft::Run(options, std::chrono::milliseconds(weft::NumberArgument<int>(argv[4])));
}
