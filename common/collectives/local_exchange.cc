#include "common/collectives/local_exchange.h"

#include <sched.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// As ports between processes do (common/transport/ucx): how long to poll; a yield that takes longer
// gave the processor to somebody who computes, so sleep at once for a number of waits.
constexpr std::chrono::microseconds kPollTime{50};
constexpr std::chrono::microseconds kCrowdedYield{100};
constexpr int kWaitsWithoutPolling = 256;
// Ranks of verified programs come nowhere near.
constexpr size_t kMostMessages = 1 << 14;
constexpr size_t kMostSpare = 64;

}  // namespace

LocalExchange::LocalExchange(int32_t places) {
  for (int32_t i = 0; i < places; ++i) mailboxes_.push_back(std::make_unique<Mailbox>());
}

void LocalExchange::Note(Mailbox& mailbox) {
  mailbox.changes.fetch_add(1, std::memory_order_release);
  if (mailbox.asleep) mailbox.changed.NotifyAll();
}

absl::Status LocalExchange::Send(int32_t to, const Key& key, absl::Span<const uint8_t> bytes) {
  Mailbox& mailbox = *mailboxes_[to];
  std::vector<uint8_t> memory;
  {
    MutexLock lock(mailbox.mutex);
    RETURN_IF_ERROR(mailbox.aborted);
    if (key.step <= mailbox.retired) return absl::OkStatus();
    if (mailbox.messages.size() >= kMostMessages) {
      return absl::ResourceExhaustedError(
          absl::StrCat(mailbox.messages.size(), " messages wait to be received"));
    }
    if (!mailbox.spare.empty()) {
      memory = std::move(mailbox.spare.back());
      mailbox.spare.pop_back();
    }
  }
  memory.assign(bytes.begin(), bytes.end());
  MutexLock lock(mailbox.mutex);
  RETURN_IF_ERROR(mailbox.aborted);
  mailbox.messages.push_back({key, std::move(memory)});
  Note(mailbox);
  return absl::OkStatus();
}

bool LocalExchange::TakeMessage(Mailbox& mailbox, const Key& key, Message& found) {
  for (Message& message : mailbox.messages) {
    if (message.key != key) continue;
    std::swap(message, mailbox.messages.back());
    found = std::move(mailbox.messages.back());
    mailbox.messages.pop_back();
    return true;
  }
  return false;
}

void LocalExchange::Poll(Mailbox& mailbox, uint64_t seen) const {
  if (mailbox.waits_without_polling > 0) {
    --mailbox.waits_without_polling;
    return;
  }
  const Clock::TimePoint start = clock_.Now();
  Clock::TimePoint now = start;
  while (mailbox.changes.load(std::memory_order_acquire) == seen && now - start < kPollTime) {
    sched_yield();
    const Clock::TimePoint after = clock_.Now();
    if (after - now > kCrowdedYield) {
      mailbox.waits_without_polling = kWaitsWithoutPolling;
      return;
    }
    now = after;
  }
}

absl::Status LocalExchange::Receive(int32_t at, const Key& key, int64_t bytes,
                                    Clock::TimePoint deadline, const std::atomic<bool>* stop,
                                    TakeBytes take) {
  Mailbox& mailbox = *mailboxes_[at];
  Message message;
  bool polled = false;
  bool in_time = true;
  mailbox.mutex.Lock();
  absl::Status status;
  while (!TakeMessage(mailbox, key, message)) {
    status = mailbox.aborted;
    if (status.ok() && stop != nullptr && stop->load(std::memory_order_relaxed)) {
      status = absl::CancelledError("the wait was stopped");
    }
    if (status.ok() && !in_time) status = absl::DeadlineExceededError("did not come in time");
    if (!status.ok()) break;
    if (!polled) {
      const uint64_t seen = mailbox.changes.load(std::memory_order_relaxed);
      mailbox.mutex.Unlock();
      Poll(mailbox, seen);
      mailbox.mutex.Lock();
      // Something else may have come: then this is worth another look and another poll.
      polled = mailbox.changes.load(std::memory_order_relaxed) == seen;
      continue;
    }
    mailbox.asleep = true;
    in_time = mailbox.changed.WaitUntil(mailbox.mutex, deadline);
    mailbox.asleep = false;
  }
  mailbox.mutex.Unlock();
  RETURN_IF_ERROR(status);
  const auto size = static_cast<int64_t>(message.bytes.size());
  if (size == bytes) take(message.bytes);
  {
    MutexLock lock(mailbox.mutex);
    if (mailbox.spare.size() < kMostSpare) mailbox.spare.push_back(std::move(message.bytes));
  }
  if (size == bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("sent ", size, " bytes instead of ", bytes));
}

void LocalExchange::Wake() {
  for (const auto& mailbox : mailboxes_) {
    MutexLock lock(mailbox->mutex);
    Note(*mailbox);
  }
}

void LocalExchange::Retire(int64_t step) {
  for (const auto& mailbox : mailboxes_) {
    MutexLock lock(mailbox->mutex);
    if (step <= mailbox->retired) continue;
    mailbox->retired = step;
    std::erase_if(mailbox->messages,
                  [&](const Message& message) { return message.key.step <= step; });
  }
}

void LocalExchange::Abort(const absl::Status& reason) {
  for (const auto& mailbox : mailboxes_) {
    MutexLock lock(mailbox->mutex);
    mailbox->aborted.Update(reason);
    Note(*mailbox);
  }
}

absl::Status LocalLink::Send(const CollectiveCall& call, int32_t to, int32_t number,
                             absl::Span<const uint8_t> bytes) {
  return exchange_.Send(to, {call.step, CollectiveMessageId(call.id, number, rank_, to)}, bytes);
}

absl::Status LocalLink::Receive(const CollectiveCall& call, int32_t from, int32_t number,
                                int64_t bytes, TakeBytes take) {
  const LocalExchange::Key key{call.step, CollectiveMessageId(call.id, number, from, rank_)};
  const absl::Status status = exchange_.Receive(rank_, key, bytes, call.deadline, call.stop, take);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("step ", call.step, ", collective ", call.id, ", rank ", rank_,
                                   " from rank ", from, ": ", status.message()));
}

}  // namespace weft
