#include "worker/service/session_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"

namespace weft {
namespace {

// Not negative.
absl::StatusOr<int64_t> RandomId() {
  uint64_t bits = 0;
  RETURN_IF_ERROR(
      FillWithSystemRandom(absl::MakeSpan(reinterpret_cast<uint8_t*>(&bits), sizeof(bits))));
  return static_cast<int64_t>(bits >> 1);
}

}  // namespace

absl::Status SessionTable::CheckRoom() const {
  if (draining_) {
    return absl::UnavailableError("this worker is draining and takes no new sessions");
  }
  if (static_cast<int64_t>(entries_.size()) >= limit_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this worker has ", limit_, " sessions, the most it takes"));
  }
  return absl::OkStatus();
}

bool SessionTable::accepts() const {
  MutexLock lock(mutex_);
  return CheckRoom().ok();
}

int64_t SessionTable::buffer_bytes() const {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, entry] : entries_) sessions.push_back(entry.session);
  }
  int64_t bytes = 0;
  for (const std::shared_ptr<Session>& session : sessions) {
    bytes += session->statistics().buffer_bytes;
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<Session>> SessionTable::Open(
    std::string coordinator, std::function<void(const std::string&)> end) {
  MutexLock lock(mutex_);
  const absl::Status room = CheckRoom();
  if (parts_.meter != nullptr) parts_.meter->CountSession(room.ok());
  RETURN_IF_ERROR(room);
  int64_t id = 0;
  while (id == 0 || entries_.contains(id)) {
    ASSIGN_OR_RETURN(id, RandomId());
  }
  auto session = std::make_shared<Session>(id, std::move(coordinator), parts_);
  entries_[id] = {session, std::move(end), clock_.Now()};
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> SessionTable::Find(int64_t id) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("this worker has no session ", id));
  }
  return found->second.session;
}

void SessionTable::Touch(int64_t id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second.last_sign = clock_.Now();
}

void SessionTable::Remove(int64_t id, const absl::Status& reason) {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    session = std::move(found->second.session);
    entries_.erase(found);
    removed_.NotifyAll();
  }
  session->Abort(reason);
}

void SessionTable::EndSilent() {
  std::vector<std::function<void(const std::string&)>> over;
  {
    MutexLock lock(mutex_);
    const Clock::TimePoint now = clock_.Now();
    for (auto& [id, entry] : entries_) {
      if (now - entry.last_sign < lease_ || !entry.end) continue;
      parts_.logger->Warning(
          StdView(absl::StrCat("session ", id, " of ", entry.session->coordinator(),
                               " ended: no sign of the coordinator")));
      over.push_back(std::exchange(entry.end, nullptr));
    }
  }
  for (const auto& end : over) end("no sign of the coordinator");
}

void SessionTable::EndAll(const std::string& reason) {
  std::vector<std::function<void(const std::string&)>> all;
  {
    MutexLock lock(mutex_);
    draining_ = true;
    for (auto& [id, entry] : entries_) {
      if (entry.end) all.push_back(std::exchange(entry.end, nullptr));
    }
  }
  for (const auto& end : all) end(reason);
}

void SessionTable::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
}

bool SessionTable::draining() const {
  MutexLock lock(mutex_);
  return draining_;
}

bool SessionTable::AwaitCount(int32_t most, Clock::TimePoint deadline) const {
  MutexLock lock(mutex_);
  while (static_cast<int32_t>(entries_.size()) > most) {
    if (!removed_.WaitUntil(mutex_, deadline)) break;
  }
  return static_cast<int32_t>(entries_.size()) <= most;
}

int32_t SessionTable::count() const {
  MutexLock lock(mutex_);
  return static_cast<int32_t>(entries_.size());
}

}  // namespace weft
