#include "common/program/loopback_edges.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

std::string MessageText(int64_t step, int32_t edge, int32_t sender) {
  return absl::StrCat("step ", step, ", edge ", edge, " from process ", sender);
}

}  // namespace

class LoopbackEdges::Port final : public EdgePort {
 public:
  Port(LoopbackEdges& edges, int32_t process) : edges_(edges), process_(process) {}

  absl::Status Send(int64_t step, int32_t edge, int32_t peer,
                    absl::Span<const uint8_t> bytes) override {
    RETURN_IF_ERROR(edges_.CheckPeer(peer));
    return edges_.Put(peer, {step, edge, process_}, bytes);
  }

  absl::Status Take(int64_t step, int32_t edge, int32_t peer, int64_t bytes, TakeBytes take,
                    Clock::TimePoint deadline, const std::atomic<bool>& stop) override {
    RETURN_IF_ERROR(edges_.CheckPeer(peer));
    return edges_.Take(process_, {step, edge, peer}, bytes, take, deadline, stop);
  }

  void Wake() override {
    Mailbox& mailbox = *edges_.mailboxes_[process_];
    // A receiver that has looked at its flag holds the mutex until it sleeps.
    MutexLock lock(mailbox.mutex);
    mailbox.changed.NotifyAll();
  }

  void Retire(int64_t step) override {
    Mailbox& mailbox = *edges_.mailboxes_[process_];
    MutexLock lock(mailbox.mutex);
    if (step <= mailbox.retired) return;
    mailbox.retired = step;
    for (auto it = mailbox.messages.begin(); it != mailbox.messages.end();) {
      const auto message = it++;
      if (message->first.step > step) continue;
      mailbox.bytes -= static_cast<int64_t>(message->second.size());
      ++mailbox.from[message->first.sender].dropped;
      mailbox.messages.erase(message);
    }
  }

 private:
  LoopbackEdges& edges_;
  const int32_t process_;
};

LoopbackEdges::LoopbackEdges(const LoopbackOptions& options) : options_(options) {
  for (int32_t p = 0; p < options.processes; ++p) {
    auto mailbox = std::make_unique<Mailbox>();
    {
      MutexLock lock(mailbox->mutex);
      mailbox->from.resize(static_cast<size_t>(options.processes));
      mailbox->lost_from.resize(static_cast<size_t>(options.processes));
    }
    mailboxes_.push_back(std::move(mailbox));
    ports_.push_back(std::make_unique<Port>(*this, p));
  }
}

LoopbackEdges::~LoopbackEdges() = default;

EdgePort& LoopbackEdges::port(int32_t process) { return *ports_[process]; }

absl::Status LoopbackEdges::CheckPeer(int32_t peer) const {
  if (peer >= 0 && peer < options_.processes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no process ", peer));
}

absl::Status LoopbackEdges::Put(int32_t to, const Key& key, absl::Span<const uint8_t> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  Mailbox& mailbox = *mailboxes_[to];
  MutexLock lock(mailbox.mutex);
  RETURN_IF_ERROR(mailbox.lost);
  RETURN_IF_ERROR(mailbox.lost_from[key.sender]);
  EdgeTraffic& traffic = mailbox.from[key.sender];
  if (key.step <= mailbox.retired) {
    ++traffic.dropped;
    return absl::OkStatus();
  }
  if (static_cast<int64_t>(mailbox.messages.size()) >= options_.mailbox_messages ||
      size > options_.mailbox_bytes - mailbox.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        MessageText(key.step, key.edge, key.sender), ": the mailbox of process ", to, " is full, ",
        mailbox.messages.size(), " messages of ", mailbox.bytes, " bytes wait"));
  }
  if (!mailbox.messages.try_emplace(key, bytes.begin(), bytes.end()).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(MessageText(key.step, key.edge, key.sender), " was sent before"));
  }
  mailbox.bytes += size;
  ++traffic.messages;
  traffic.bytes += size;
  mailbox.changed.NotifyAll();
  return absl::OkStatus();
}

absl::Status LoopbackEdges::Take(int32_t at, const Key& key, int64_t bytes, TakeBytes take,
                                 Clock::TimePoint deadline, const std::atomic<bool>& stop) {
  std::vector<uint8_t> message;
  RETURN_IF_ERROR(TakeMessage(at, key, message, deadline, stop));
  if (static_cast<int64_t>(message.size()) != bytes) {
    return absl::DataLossError(absl::StrCat(MessageText(key.step, key.edge, key.sender), " has ",
                                            message.size(), " bytes, want ", bytes));
  }
  take(message);
  return absl::OkStatus();
}

absl::Status LoopbackEdges::TakeMessage(int32_t at, const Key& key, std::vector<uint8_t>& message,
                                        Clock::TimePoint deadline, const std::atomic<bool>& stop) {
  Mailbox& mailbox = *mailboxes_[at];
  MutexLock lock(mailbox.mutex);
  auto found = mailbox.messages.find(key);
  bool in_time = true;
  while (found == mailbox.messages.end()) {
    const std::string text = MessageText(key.step, key.edge, key.sender);
    RETURN_IF_ERROR(mailbox.lost);
    RETURN_IF_ERROR(mailbox.lost_from[key.sender]);
    if (stop.load(std::memory_order_relaxed)) return absl::CancelledError(text);
    if (!in_time) return absl::DeadlineExceededError(absl::StrCat(text, " did not come"));
    in_time = mailbox.changed.WaitUntil(mailbox.mutex, deadline);
    found = mailbox.messages.find(key);
  }
  message = std::move(found->second);
  mailbox.messages.erase(found);
  mailbox.bytes -= static_cast<int64_t>(message.size());
  return absl::OkStatus();
}

void LoopbackEdges::Abort(const absl::Status& status) {
  for (int32_t p = 0; p < options_.processes; ++p) AbortProcess(p, status);
}

void LoopbackEdges::AbortProcess(int32_t process, const absl::Status& status) {
  for (int32_t p = 0; p < options_.processes; ++p) {
    Mailbox& mailbox = *mailboxes_[p];
    MutexLock lock(mailbox.mutex);
    const bool whole = p == process || options_.needs_all;
    (whole ? mailbox.lost : mailbox.lost_from[process]).Update(status);
    mailbox.changed.NotifyAll();
  }
}

EdgeTraffic LoopbackEdges::traffic(int32_t from, int32_t to) {
  Mailbox& mailbox = *mailboxes_[to];
  MutexLock lock(mailbox.mutex);
  return mailbox.from[from];
}

int64_t LoopbackEdges::waiting(int32_t process) {
  Mailbox& mailbox = *mailboxes_[process];
  MutexLock lock(mailbox.mutex);
  return static_cast<int64_t>(mailbox.messages.size());
}

}  // namespace weft
