#include "coordinator/cluster/worker_search.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/error_scope.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {
namespace {

bool Contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::string WorkerIdentity(const RemoteWorkerInfo& info) {
  return IdentityText(info.host_identity, info.incarnation);
}

std::string IdentityText(const std::string& host_identity, const std::string& incarnation) {
  return absl::StrCat(host_identity, "\n", incarnation);
}

std::vector<absl::StatusOr<FoundWorker>> AskAddresses(absl::Span<const std::string> addresses,
                                                      const RemoteWorkerOptions& options) {
  std::vector<absl::StatusOr<FoundWorker>> found;
  found.reserve(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) found.emplace_back(absl::UnknownError(""));
  RunParallel(addresses.size(), [&](size_t i) {
    RemoteWorkerOptions one = options;
    one.name = "at";
    one.address = addresses[i];
    const auto worker = RemoteWorker::Connect(std::move(one), nullptr);
    if (worker.ok()) {
      found[i] = FoundWorker{addresses[i], WorkerIdentity((*worker)->info())};
    } else {
      found[i] = worker.status();
    }
    return absl::OkStatus();
  }).IgnoreError();
  return found;
}

absl::StatusOr<std::vector<NumberedWorker>> FindWorkers(WorkerDirectory& directory,
                                                        const RemoteWorkerOptions& options,
                                                        Clock::TimePoint deadline, Logger& logger) {
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, directory.Await(deadline));
  std::vector<FoundWorker> workers;
  std::vector<std::string> identities;
  absl::Status why;
  for (absl::StatusOr<FoundWorker>& found : AskAddresses(addresses, options)) {
    if (!found.ok()) {
      if (why.ok()) why = found.status();
      logger.Warning(StdView(absl::StrCat("left out: ", found.status().message())));
    } else if (Contains(identities, found->identity)) {
      logger.Info(
          StdView(absl::StrCat(found->address, " leads to a worker that is there already")));
    } else {
      identities.push_back(found->identity);
      workers.push_back(*std::move(found));
    }
  }
  if (workers.empty()) {
    const absl::Status none = absl::UnavailableError(
        absl::StrCat("none of the ", addresses.size(), " addresses of ", directory.description(),
                     " leads to a worker: ", why.message()));
    return WithScope(none, ErrorScope::kWorker);
  }
  const std::vector<int32_t> numbers = directory.Number(identities);
  std::vector<NumberedWorker> numbered;
  numbered.reserve(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    numbered.push_back({std::move(workers[i]), numbers[i]});
  }
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return numbered;
}

// --- WorkerWatch ---

absl::StatusOr<std::unique_ptr<WorkerWatch>> WorkerWatch::Start(WorkerDirectory& directory,
                                                                std::vector<std::string> fleet,
                                                                Options options) {
  auto watch = absl::WrapUnique(new WorkerWatch(directory, std::move(fleet), std::move(options)));
  ASSIGN_OR_RETURN(watch->thread_, StartThread([raw = watch.get()] { raw->Run(); }));
  return watch;
}

WorkerWatch::~WorkerWatch() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status WorkerWatch::news() const {
  MutexLock lock(mutex_);
  return news_;
}

std::vector<std::string> WorkerWatch::Newcomers() {
  std::vector<std::string> unknown;
  const absl::StatusOr<std::vector<std::string>> addresses = directory_.Look();
  if (!addresses.ok()) return unknown;  // who is known is asked by its own pings
  for (const std::string& address : *addresses) {
    if (!Contains(known_addresses_, address)) unknown.push_back(address);
  }
  std::vector<std::string> newcomers;
  for (const absl::StatusOr<FoundWorker>& found : AskAddresses(unknown, options_.worker)) {
    if (!found.ok()) continue;
    // An address stays with its worker as long as that lives: one that dies ends the fleet.
    (Contains(fleet_, found->identity) ? known_addresses_ : newcomers).push_back(found->address);
  }
  return newcomers;
}

void WorkerWatch::Run() {
  std::vector<std::string> before;
  Clock::TimePoint next = clock_.Now() + options_.quiet_start;
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!ending_ && changed_.WaitUntil(mutex_, next)) {
      }
      if (ending_ || !news_.ok()) return;
    }
    std::vector<std::string> now = Newcomers();
    if (!now.empty() && now == before) {
      MutexLock lock(mutex_);
      news_ = absl::UnavailableError(
          absl::StrCat("there are more workers, at ", absl::StrJoin(now, ", ")));
    }
    before = std::move(now);
    next = clock_.Now() + options_.period;
  }
}

}  // namespace weft
