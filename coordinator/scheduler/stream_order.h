// Which events make the streams of a plan run in an order that its data and its memory allow.
//
// Per stream progress is counted: 0 once its inputs are in place, 2k + 1 once the copies of its
// k-th split are done, 2k + 2 once that split is and has sent what others receive. A split waits
// for whoever makes what it reads, and for whoever still uses memory that it may write over: the
// planner frees a tensor when its last reader in graph order has run, so writers wait for all
// earlier readers of that memory on other streams.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/scheduler/plan_context.h"
#include "coordinator/scheduler/scheduled_graph.h"

namespace weft {

// `event` is recorded by `device` at this progress.
struct EventPoint {
  int32_t device = kNoDevice;
  int32_t progress = 0;
  friend bool operator==(const EventPoint&, const EventPoint&) = default;
};

struct StreamOrder {
  std::vector<EventPoint> events;           // by event number
  std::vector<std::vector<int32_t>> waits;  // per split: events to wait for before its copies
  std::vector<int32_t> ordinal;             // per split: which of its device's
};

// `scheduled` is a plan's or the part of one process. `pipelined`: what crosses devices lies in
// memory of its own, which is not used again.
StreamOrder OrderStreams(const PlanContext& context, const ScheduledGraph& scheduled,
                         bool pipelined);

}  // namespace weft
