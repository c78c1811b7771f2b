// What the engine's thread tells the others about itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/metrics/histogram.h"
#include "coordinator/engine/model_runner.h"

namespace weft {

struct ServingCounters {
  // One more that ended so.
  void CountEnd(const absl::Status& status);

  int64_t requests = 0;  // that were taken
  int64_t refused = 0;   // since too many waited
  int64_t finished = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t prompt_tokens = 0;  // of admitted requests
  int64_t reused_tokens = 0;  // of these, found in the cache
  int64_t generated_tokens = 0;
  int64_t steps = 0;
  int64_t step_tokens = 0;     // of all steps together
  int64_t logits_fetched = 0;  // rows that came with all their logits
  int64_t preempted = 0;       // set back since the cache was full
  int64_t sessions_lost = 0;
  int64_t sessions_opened = 0;
  DurationHistogram queue;        // from submission to admission
  DurationHistogram first_token;  // from submission
  DurationHistogram between_tokens;
  DurationHistogram step;      // from launch to the end of sampling
  SizeHistogram batch_tokens;  // of each step
  SizeHistogram batch_sequences;
  double waiting_seconds = 0;   // for steps
  double working_seconds = 0;   // on what is between them: batches, sampling, text
  double sampling_seconds = 0;  // of these, on choosing tokens
};

// What a process did for the steps of this session.
struct ProcessTimes {
  std::string name;
  int64_t steps = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;        // for what other processes send
  double round_trip_seconds = 0;  // from request to reply; 0: it is not far away
  int64_t sent_bytes = 0;         // to other processes of the plan
  int64_t programs = 0;           // that were sent to it
};

// Payloads of this session's messages between this process and its workers.
struct TransportBytes {
  std::string transport;
  int64_t sent = 0;
  int64_t received = 0;
};

struct ServingState {
  ServingCounters counters;
  RunnerCounters runner;  // of the session
  RunnerMemory memory;
  std::vector<ProcessTimes> processes;     // none where all runs here
  std::vector<TransportBytes> transports;  // as well
  bool ready = false;   // a token went through every rank since the session was opened
  std::string trouble;  // why it is not
  int64_t active = 0;   // sequences with a slot
  int64_t waiting = 0;
  int64_t slots = 0;
  int64_t pages_used = 0;  // by sequences
  int64_t pages_kept = 0;  // of ended ones, which may be reused
  int64_t pages = 0;
  Clock::TimePoint last_progress{};  // when a step last ended, or work last began
};

}  // namespace weft
