#include "coordinator/cluster/name_resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {
namespace {

using Addresses = absl::StatusOr<std::vector<std::string>>;

// What the asking thread and the one that waits share.
struct Inquiry {
  Mutex mutex;
  CondVar changed;
  bool asking ABSL_GUARDED_BY(mutex) = false;
  bool answered ABSL_GUARDED_BY(mutex) = false;
  Addresses answer ABSL_GUARDED_BY(mutex) = absl::UnknownError("");
};

// Waits for the system as long as that takes.
Addresses AskSystem(const HostAddress& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.host.c_str(), "0", &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("'", name.host, "' has no address: ", gai_strerror(error)));
  }
  std::set<std::string> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    char host[NI_MAXHOST] = {};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    addresses.insert(HostAddress{.host = host, .port = name.port, .socket_path = ""}.Text());
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return absl::UnavailableError(absl::StrCat("'", name.host, "' has no address"));
  }
  return std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace

ResolveName SystemResolver(std::chrono::milliseconds timeout) {
  const auto inquiry = std::make_shared<Inquiry>();  // shared with threads that are left behind
  return [inquiry, timeout](const HostAddress& name) -> Addresses {
    const auto late = [&] {
      return absl::DeadlineExceededError(
          absl::StrCat("nobody says in time what addresses '", name.host, "' has"));
    };
    MutexLock lock(inquiry->mutex);
    if (inquiry->asking) return late();
    inquiry->asking = true;
    inquiry->answered = false;
    absl::StatusOr<std::thread> thread = StartThread([inquiry, name] {
      Addresses answer = AskSystem(name);
      MutexLock done(inquiry->mutex);
      inquiry->answer = std::move(answer);
      inquiry->answered = true;
      inquiry->asking = false;
      inquiry->changed.NotifyAll();
    });
    if (!thread.ok()) {
      inquiry->asking = false;
      return thread.status();
    }
    thread->detach();
    const Clock::TimePoint deadline = SystemClock().Now() + timeout;
    while (!inquiry->answered && inquiry->changed.WaitUntil(inquiry->mutex, deadline)) {
    }
    if (!inquiry->answered) return late();
    return inquiry->answer;
  };
}

}  // namespace weft
