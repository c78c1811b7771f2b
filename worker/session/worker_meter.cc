#include "worker/session/worker_meter.h"

namespace weft {

const char* WeightSourceText(WeightSource source) {
  switch (source) {
    case WeightSource::kFile:
      return "file";
    case WeightSource::kCache:
      return "cache";
    case WeightSource::kPeer:
      return "peer";
    case WeightSource::kCoordinator:
      return "coordinator";
  }
  return "unknown";
}

void WorkerMeter::CountSession(bool opened) {
  MutexLock lock(mutex_);
  ++(opened ? counts_.sessions_opened : counts_.sessions_refused);
}

void WorkerMeter::CountProgram() {
  MutexLock lock(mutex_);
  ++counts_.programs;
}

void WorkerMeter::CountStep(bool ok, double seconds, const StepOutput& output) {
  MutexLock lock(mutex_);
  if (!ok) {
    ++counts_.steps_failed;
    return;
  }
  ++counts_.steps;
  counts_.compute_seconds += output.compute_seconds;
  counts_.wait_seconds += output.wait_seconds;
  counts_.wire_seconds += output.wire_seconds;
  counts_.hand_off_seconds += output.hand_off_seconds;
  counts_.step_seconds.Add(seconds);
}

void WorkerMeter::CountWeights(WeightSource source, int64_t bytes) {
  MutexLock lock(mutex_);
  counts_.weight_bytes[static_cast<size_t>(source)] += bytes;
}

void WorkerMeter::CountCache(int64_t hits, int64_t misses) {
  MutexLock lock(mutex_);
  counts_.cache_hits += hits;
  counts_.cache_misses += misses;
}

void WorkerMeter::AddTraffic(MessagePort& port, std::map<std::string, KindTraffic>& sums) {
  for (const PeerTraffic& peer : port.traffic()) {
    if (peer.transport.empty()) continue;  // never connected
    KindTraffic& sum = sums[peer.transport];
    const KindTraffic total = peer.Total();
    sum.messages_sent += total.messages_sent;
    sum.bytes_sent += total.bytes_sent;
    sum.messages_received += total.messages_received;
    sum.bytes_received += total.bytes_received;
  }
}

void WorkerMeter::AddPort(MessagePort& port) {
  MutexLock lock(mutex_);
  ports_.insert(&port);
}

void WorkerMeter::RemovePort(MessagePort& port) {
  MutexLock lock(mutex_);
  if (ports_.erase(&port) > 0) AddTraffic(port, counts_.traffic);
}

WorkerCounts WorkerMeter::counts() const {
  MutexLock lock(mutex_);
  WorkerCounts counts = counts_;
  counts.collectives = collectives_.counts();
  for (MessagePort* port : ports_) AddTraffic(*port, counts.traffic);
  return counts;
}

}  // namespace weft
