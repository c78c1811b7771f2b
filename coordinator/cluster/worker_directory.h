// Workers that are found by a name (--workers-dns) or come by themselves (--workers-join): their
// addresses as they come and go, and what each is called as long as it lives.
#pragma once

#include <chrono>
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
  // What it is asked for the first time.
  struct Patience {
    size_t least = 1;                           // addresses
    std::chrono::milliseconds at_the_start{0};  // to wait for them
  };
  // `name` has a port, or is empty where there is none behind which they are. `description` ends a
  // sentence: "the workers behind 'NAME'", unless given.
  WorkerDirectory(HostAddress name, ResolveName resolve)
      : WorkerDirectory(std::move(name), std::move(resolve), "", Patience{}) {}
  WorkerDirectory(HostAddress name, ResolveName resolve, std::string description,
                  const Patience& patience)
      : name_(std::move(name)),
        resolve_(std::move(resolve)),
        description_(description.empty() ? "the workers behind '" + name_.host + "'"
                                         : std::move(description)),
        patience_(patience) {}

  const HostAddress& name() const { return name_; }
  const std::string& description() const { return description_; }

  // The addresses behind the name now: sorted, none twice. Errors: those of the resolver;
  // RESOURCE_EXHAUSTED for more than kMostAddresses.
  absl::StatusOr<std::vector<std::string>> Look() const;
  // The same, asked again until there is one; at first until there are those of its patience.
  // Errors: as above; UNAVAILABLE where there were less.
  absl::StatusOr<std::vector<std::string>> Await(Clock::TimePoint deadline);
  // Whether those of its patience are there, or were.
  bool Started();

  // The numbers of workers ("w2") by what they are (WorkerIdentity), in that order. Who had one
  // keeps it; others get the lowest that is free. Those who are not among them have none any more.
  std::vector<int32_t> Number(absl::Span<const std::string> identities);

  static constexpr size_t kMostAddresses = 256;

 private:
  // Started(), given what was found.
  bool StartsWith(const absl::StatusOr<std::vector<std::string>>& found);

  const HostAddress name_;
  const ResolveName resolve_;
  const std::string description_;
  const Patience patience_;
  const SystemClock clock_;
  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int32_t> numbers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
