// The plan of the present session, put up for the page of `weft serve`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "coordinator/cli/local_session.h"
#include "coordinator/explain/placement_summary.h"
#include "coordinator/http/fleet_view.h"

namespace weft {

// A process of a session, as people know it.
struct BoardHost {
  std::string name;        // "w0"; "local" is this one
  std::string label;       // "worker w0 (10.0.0.2:7000)"
  std::string machine;     // as it calls itself; may be empty
  std::string release;     // of its program
  double ping_us = 0;      // least round trip; 0: none
  bool has_cache = false;  // of weights
};

struct BoardPlan {
  std::string architecture;
  int64_t layers = 0;
  std::string split;  // how layers or shares were chosen, in words
  std::vector<BoardHost> hosts;
  PlacementSummary summary;
  RunnerMemory memory;
  int64_t arena_bytes = 0;
};

// As GET /v1/fleet shows it; bytes that are not UTF-8 are replaced.
Json BoardJson(const BoardPlan& plan);

// NOLINTNEXTLINE(bugprone-exception-escape): the library says that moving JSON does not throw.
class FleetBoard final : public FleetView {
 public:
  // Any thread.
  Json Plan() const override;

  // --- The engine's thread ---

  // Errors: those of SummarizePlacement; then nothing is shown.
  absl::Status Show(LocalSession& session);
  // There is no session.
  void Clear();

 private:
  mutable Mutex mutex_;
  Json plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
