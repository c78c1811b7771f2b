#include "coordinator/cluster/worker_directory.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kPause{500};

}  // namespace

absl::StatusOr<std::vector<std::string>> WorkerDirectory::Look() const {
  ASSIGN_OR_RETURN(std::vector<std::string> addresses, resolve_(name_));
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (addresses.size() > kMostAddresses) {
    return absl::ResourceExhaustedError(absl::StrCat(description_, ": ", addresses.size(),
                                                     " addresses, more than ", kMostAddresses));
  }
  return addresses;
}

bool WorkerDirectory::Started() {
  {
    MutexLock lock(mutex_);
    if (started_) return true;
  }
  return StartsWith(Look());
}

bool WorkerDirectory::StartsWith(const absl::StatusOr<std::vector<std::string>>& found) {
  MutexLock lock(mutex_);
  started_ = started_ || (found.ok() && found->size() >= patience_.least);
  return started_;
}

absl::StatusOr<std::vector<std::string>> WorkerDirectory::Await(Clock::TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    if (!started_) deadline = std::max(deadline, clock_.Now() + patience_.at_the_start);
  }
  Mutex mutex;
  CondVar never;
  while (true) {
    absl::StatusOr<std::vector<std::string>> addresses = Look();
    const Clock::TimePoint now = clock_.Now();
    if (addresses.ok() && StartsWith(addresses)) return addresses;
    if (now >= deadline) {
      if (!addresses.ok()) return addresses.status();
      return absl::UnavailableError(absl::StrCat(addresses->size(), " of ", description_,
                                                 " are there, and ", patience_.least,
                                                 " are waited for"));
    }
    MutexLock lock(mutex);
    (void)never.WaitUntil(mutex, std::min(deadline, now + kPause));
  }
}

std::vector<int32_t> WorkerDirectory::Number(absl::Span<const std::string> identities) {
  MutexLock lock(mutex_);
  std::map<std::string, int32_t> kept;
  std::set<int32_t> taken;
  for (const std::string& identity : identities) {
    const auto known = numbers_.find(identity);
    if (known == numbers_.end()) continue;
    kept.insert(*known);
    taken.insert(known->second);
  }
  std::vector<int32_t> numbers;
  int32_t next = 0;
  for (const std::string& identity : identities) {
    const auto known = kept.find(identity);
    if (known == kept.end()) {
      while (taken.contains(next)) ++next;
      taken.insert(next);
      kept[identity] = next;
    }
    numbers.push_back(kept[identity]);
  }
  numbers_ = std::move(kept);
  return numbers;
}

}  // namespace weft
