// All-reduces between ranks: processes with ports, or threads of one. Starts the other processes
// itself.
//
//   weft_collectives_bench [RANKS] [shm|tcp|threads] [ROUNDS]
//
// One line per size and algorithm: median and 90th percentile of rank 0 in us, with the longest
// chain of messages and what each rank sends.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/collectives/communicator.h"
#include "common/collectives/local_exchange.h"
#include "common/collectives/wire_format.h"
#include "tests/support/number_argument.h"
#include "tests/support/port_rank.h"

extern char** environ;

namespace weft {
namespace {

constexpr int64_t kSizes[] = {64, 1024, 8192, 65536, 262144, 1048576};

struct Setup {
  int32_t ranks = 2;
  std::string medium = "shm";
  int rounds = 2000;
};

// reduce(step, algorithm, values) on one rank; prints on rank 0.
template <typename Reduce>
void Measure(const Setup& setup, int32_t rank, const std::string& transport, const Reduce& reduce) {
  int64_t step = 0;
  for (const int64_t bytes : kSizes) {
    for (const auto algorithm :
         {CollectiveAlgorithm::kRecursiveDoubling, CollectiveAlgorithm::kByParts}) {
      std::vector<float> values(static_cast<size_t>(bytes / 4), 1.0f);
      const int rounds = bytes > 100000 ? setup.rounds / 10 : setup.rounds;
      std::vector<double> times;
      for (int i = 0; i < rounds + rounds / 10; ++i) {
        std::fill(values.begin(), values.end(), 1.0f);
        const auto start = std::chrono::steady_clock::now();
        const absl::Status status = reduce(++step, algorithm, absl::MakeSpan(values));
        const auto end = std::chrono::steady_clock::now();
        if (!status.ok()) {
          std::fprintf(stderr, "rank %d: %s\n", rank, std::string(status.message()).c_str());
          std::exit(1);
        }
        if (i < rounds / 10) continue;
        times.push_back(std::chrono::duration<double, std::micro>(end - start).count());
      }
      if (rank != 0) continue;
      std::sort(times.begin(), times.end());
      CollectiveShape shape;
      shape.algorithm = algorithm;
      shape.hosts.resize(setup.ranks);
      shape.elements = bytes / 4;
      const ScheduleCost cost = CostOf(MakeSchedule(shape), shape.hosts);
      std::printf("%5d  %-10s %8ld  %-20s %5ld %8ld %9ld  %9.1f %9.1f\n", setup.ranks,
                  transport.c_str(), static_cast<long>(bytes),
                  std::string(CollectiveAlgorithmName(algorithm)).c_str(),
                  static_cast<long>(cost.steps), static_cast<long>(cost.messages),
                  static_cast<long>(WireBytes(DType::kF32, cost.elements)), times[times.size() / 2],
                  times[times.size() * 9 / 10]);
      std::fflush(stdout);
    }
  }
}

CollectiveCall CallOf(int64_t step) {
  return {.step = step, .id = 1, .deadline = SystemClock().Now() + std::chrono::seconds(30)};
}

void RunThreads(const Setup& setup) {
  LocalExchange exchange(setup.ranks);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < setup.ranks; ++r) {
    threads.emplace_back([&, r] {
      LocalLink link(exchange, r);
      ScheduledCommunicator own(r, std::vector<int32_t>(setup.ranks), link);
      Measure(setup, r, "threads",
              [&](int64_t step, CollectiveAlgorithm algorithm, absl::Span<float> values) {
                return own.AllReduce(values, algorithm, DType::kF32, CallOf(step));
              });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int RunProcess(const Setup& setup, int32_t rank, const std::string& folder) {
  PortRankOptions options;
  options.rank = rank;
  options.ranks = setup.ranks;
  options.folder = folder;
  options.transports = setup.medium == "tcp" ? "tcp" : "";
  auto own = PortRank::Join(options);
  if (!own.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, std::string(own.status().message()).c_str());
    return 1;
  }
  Measure(setup, rank, (*own)->transport(),
          [&](int64_t step, CollectiveAlgorithm algorithm, absl::Span<float> values) {
            return (*own)->AllReduce(step, algorithm, DType::kF32, values, CallOf(step).deadline);
          });
  // Others may still wait for what this one sent last.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return 0;
}

int RunProcesses(const Setup& setup, char* program) {
  std::string folder = "/tmp/weft_collectives_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  std::vector<pid_t> children;
  for (int32_t r = 1; r < setup.ranks; ++r) {
    std::string words[] = {program,         absl::StrCat(setup.ranks),
                           setup.medium,    absl::StrCat(setup.rounds),
                           absl::StrCat(r), folder};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) == 0) {
      children.push_back(child);
    }
  }
  int result = RunProcess(setup, 0, folder);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) result = 1;
  }
  std::filesystem::remove_all(folder);
  return result;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Setup setup;
  if (argc > 1) setup.ranks = std::max(weft::NumberArgument<int>(argv[1]), 1);
  if (argc > 2) setup.medium = argv[2];
  if (argc > 3) setup.rounds = std::max(weft::NumberArgument<int>(argv[3]), 20);
  if (argc > 5) return weft::RunProcess(setup, weft::NumberArgument<int>(argv[4]), argv[5]);
  std::printf("%5s  %-10s %8s  %-20s %5s %8s %9s  %9s %9s\n", "ranks", "transport", "bytes",
              "algorithm", "steps", "messages", "sent", "p50 us", "p90 us");
  if (setup.medium != "threads") return weft::RunProcesses(setup, argv[0]);
  weft::RunThreads(setup);
  return 0;
}
