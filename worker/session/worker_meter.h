// What a worker did since its start, of all sessions, those that are over too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/mutex.h"
#include "common/metrics/histogram.h"
#include "common/program/collective_meter.h"
#include "common/program/program_host.h"
#include "common/transport/message_port.h"

namespace weft {

// Where bytes of weights came from.
enum class WeightSource : uint8_t { kFile, kCache, kPeer, kCoordinator };
inline constexpr size_t kWeightSources = 4;

// "file", "cache", "peer", "coordinator".
const char* WeightSourceText(WeightSource source);

struct WorkerCounts {
  int64_t sessions_opened = 0;
  int64_t sessions_refused = 0;
  int64_t programs = 0;  // installed
  int64_t steps = 0;     // that were computed
  int64_t steps_failed = 0;
  double compute_seconds = 0;   // of the busiest device of each step
  double wait_seconds = 0;      // of that device, for others
  double wire_seconds = 0;      // of that device, on messages of collectives
  double hand_off_seconds = 0;  // of that device, on tensors to and from other processes
  WorkHistogram step_seconds;   // from the arrival of a step to its reply
  std::array<int64_t, kWeightSources> weight_bytes = {};
  int64_t cache_hits = 0;                      // weights
  int64_t cache_misses = 0;                    // that came from elsewhere than from here
  std::map<std::string, KindTraffic> traffic;  // by transport
  CollectiveCounts collectives;
};

// Any thread.
class WorkerMeter {
 public:
  void CountSession(bool opened);
  void CountProgram();
  void CountStep(bool ok, double seconds, const StepOutput& output);
  void CountWeights(WeightSource source, int64_t bytes);
  void CountCache(int64_t hits, int64_t misses);
  // A port counts from here until RemovePort, which is called while it lives.
  void AddPort(MessagePort& port);
  void RemovePort(MessagePort& port);

  // Of ranks of this process.
  CollectiveMeter& collectives() { return collectives_; }

  WorkerCounts counts() const;

 private:
  static void AddTraffic(MessagePort& port, std::map<std::string, KindTraffic>& sums);

  CollectiveMeter collectives_;
  mutable Mutex mutex_;
  WorkerCounts counts_ ABSL_GUARDED_BY(mutex_);  // traffic: of ports that are gone
  std::set<MessagePort*> ports_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
