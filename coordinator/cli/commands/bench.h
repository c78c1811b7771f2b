// `weft bench`: tokens per second of prefill and decode, and how much of what the machine can do at
// most that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cpu/limits/machine_limits.h"
#include "coordinator/cli/local_session.h"

namespace weft {

struct BenchOptions {
  std::vector<int64_t> prefill = {512};  // tokens of each prefill test
  std::vector<int64_t> decode = {128};   // tokens of each decode test
  int64_t repetitions = 5;
  int64_t depth = 0;  // tokens in the cache before a decode test starts
};

struct BenchResult {
  bool prefill = false;
  int64_t tokens = 0;
  int64_t batch = 0;    // tokens a step
  int64_t context = 0;  // tokens in the cache at the start
  double median = 0;    // tokens per second
  double least = 0;
  double most = 0;
  double bandwidth_share = 0;  // of the machine's read rate, by the weights read
  double peak_share = 0;       // of the machine's peak arithmetic, by the products computed
};

struct BenchReport {
  std::string model;
  int32_t threads = 0;
  MachineLimits limits;
  std::vector<BenchResult> results;
};

// Runs every test once to warm up and then `repetitions` times. Errors: INVALID_ARGUMENT for counts
// that do not fit the context of the session.
absl::StatusOr<BenchReport> RunBench(LocalSession& session, const BenchOptions& options,
                                     InstructionSet isa);

std::string BenchText(const BenchReport& report);
std::string BenchJson(const BenchReport& report);

}  // namespace weft
