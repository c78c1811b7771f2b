// Workers that are found by a name (--workers-dns): their addresses as they come and go, and what
// each is called as long as it lives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/name_resolver.h"

namespace weft {

// Outlives the fleets of a command, of which each asks anew. Any thread may call.
class WorkerDirectory {
 public:
  // `name` has a port.
  WorkerDirectory(HostAddress name, ResolveName resolve)
      : name_(std::move(name)), resolve_(std::move(resolve)) {}

  const HostAddress& name() const { return name_; }

  // The addresses behind the name now: sorted, none twice. Errors: those of the resolver;
  // RESOURCE_EXHAUSTED for more than kMostAddresses.
  absl::StatusOr<std::vector<std::string>> Look() const;
  // The same, asked again until there is one.
  absl::StatusOr<std::vector<std::string>> Await(Clock::TimePoint deadline) const;

  // The numbers of workers ("w2") by what they are (WorkerIdentity), in that order. Who had one
  // keeps it; others get the lowest that is free. Those who are not among them have none any more.
  std::vector<int32_t> Number(absl::Span<const std::string> identities);

  static constexpr size_t kMostAddresses = 256;

 private:
  const HostAddress name_;
  const ResolveName resolve_;
  const SystemClock clock_;
  Mutex mutex_;
  std::map<std::string, int32_t> numbers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
