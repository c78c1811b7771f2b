#include "rpc_backend/client/session_stream.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "rpc_backend/protocol/message_check.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {
namespace {

// How long Close waits for the worker to agree.
constexpr std::chrono::milliseconds kFarewellTime{1000};

double Microseconds(Clock::TimePoint::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionStream>> SessionStream::Open(
    proto::Worker::Stub& stub, SessionStreamOptions options, std::chrono::milliseconds timeout) {
  auto stream = absl::WrapUnique(new SessionStream(std::move(options)));
  RETURN_IF_ERROR(stream->Start(stub, timeout));
  return stream;
}

SessionStream::SessionStream(SessionStreamOptions options)
    : options_(std::move(options)), silence_(clock_.Now(), 2 * options_.ping_period) {}

SessionStream::~SessionStream() { Close(); }

absl::Status SessionStream::Start(proto::Worker::Stub& stub, std::chrono::milliseconds timeout) {
  const Clock::TimePoint deadline = clock_.Now() + timeout;
  stub.async()->Session(&context_, this);
  AddHold();  // PingLoop lets go
  request_.set_coordinator(options_.coordinator);
  {
    MutexLock lock(mutex_);
    writing_ = true;
  }
  StartWrite(&request_);
  StartRead(&reply_);
  StartCall();
  absl::StatusOr<std::thread> thread = StartThread([this] { PingLoop(); });
  if (!thread.ok()) {
    context_.TryCancel();
    RemoveHold();
    return thread.status();
  }
  thread_ = *std::move(thread);

  MutexLock lock(mutex_);
  while (!opened_ && !over_) {
    if (!changed_.WaitUntil(mutex_, deadline) && clock_.Now() >= deadline) {
      context_.TryCancel();
      return absl::DeadlineExceededError("did not open a session in time");
    }
  }
  if (opened_) return absl::OkStatus();
  while (!done_) changed_.Wait(mutex_);  // nothing is outstanding: it comes at once
  if (!why_.empty()) return absl::InternalError(why_);
  if (!final_.ok()) return final_;
  return absl::UnavailableError("ended the session before it began");
}

PingStatistics SessionStream::pings() const {
  MutexLock lock(mutex_);
  return pings_;
}

bool SessionStream::draining() const {
  MutexLock lock(mutex_);
  return draining_;
}

void SessionStream::Close() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
    changed_.NotifyAll();
    const Clock::TimePoint deadline = clock_.Now() + kFarewellTime;
    while (!done_ && clock_.Now() < deadline) changed_.WaitUntil(mutex_, deadline);
    if (!done_) {
      context_.TryCancel();
      while (!done_) changed_.Wait(mutex_);
    }
  }
  if (thread_.joinable()) thread_.join();
}

void SessionStream::End(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (ended_ || closing_ || !opened_) return;
    ended_ = true;
  }
  options_.on_end(why);
}

std::string SessionStream::TakeReply() {
  if (const absl::Status status = CheckMessage(reply_); !status.ok()) {
    return absl::StrCat("sent a reply that makes no sense: ", status.message());
  }
  silence_.Heard();
  draining_ = draining_ || reply_.draining();
  if (!opened_) {
    if (reply_.session() <= 0) {
      return reply_.farewell().empty()
                 ? absl::StrCat("named ", reply_.session(), " as the number of a session")
                 : absl::StrCat("refused the session: ", reply_.farewell());
    }
    session_ = reply_.session();
    opened_ = true;
    changed_.NotifyAll();
  }
  if (!reply_.farewell().empty()) return absl::StrCat("ended the session: ", reply_.farewell());
  if (reply_.ping() == 0) return "";
  if (reply_.ping() <= last_answer_ || reply_.ping() > last_ping_) {
    return absl::StrCat("answered ping ", reply_.ping(), ", but pings ", last_answer_ + 1, " to ",
                        last_ping_, " were open");
  }
  last_answer_ = reply_.ping();
  if (last_answer_ == last_ping_) {
    pings_.last_us = Microseconds(clock_.Now() - sent_at_);
    pings_.least_us =
        pings_.answered == 0 ? pings_.last_us : std::min(pings_.least_us, pings_.last_us);
    ++pings_.answered;
  }
  return "";
}

void SessionStream::OnReadDone(bool ok) {
  std::string why;
  {
    MutexLock lock(mutex_);
    if (ok) why = TakeReply();
    if (!ok || !why.empty()) {
      over_ = true;
      why_ = why;
      changed_.NotifyAll();
    }
  }
  if (!ok) {
    // A reply that is no message ends only this side: OnDone would not come.
    context_.TryCancel();
    return;
  }
  if (why.empty()) {
    StartRead(&reply_);
    return;
  }
  context_.TryCancel();
  End(why);
}

void SessionStream::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (!ok) over_ = true;
  changed_.NotifyAll();
}

void SessionStream::OnDone(const grpc::Status& status) {
  const absl::Status final = StatusFromWire(status.error_code(), status.error_message());
  End(final.ok() ? "ended the session"
                 : absl::StrCat("ended the session: ", std::string(final.message())));
  MutexLock lock(mutex_);
  final_ = final;
  over_ = true;
  done_ = true;
  changed_.NotifyAll();
}

void SessionStream::Ping() {
  if (writing_ || !opened_) return;
  request_.Clear();
  request_.set_ping(++last_ping_);
  sent_at_ = clock_.Now();
  writing_ = true;
  StartWrite(&request_);
}

void SessionStream::PingLoop() {
  Clock::TimePoint next = clock_.Now();
  std::string why;
  while (true) {
    bool tick = false;
    {
      MutexLock lock(mutex_);
      if (over_) break;
      if (closing_) {
        if (!writing_ && !half_closed_) {
          half_closed_ = true;
          StartWritesDone();
        }
        changed_.Wait(mutex_);
        continue;
      }
      const Clock::TimePoint now = clock_.Now();
      const SilenceMeter::Duration silent = silence_.Look(now);
      if (opened_ && silent >= options_.loss_after) {
        over_ = true;
        why = absl::StrFormat("did not answer for %g s",
                              std::chrono::duration<double>(options_.loss_after).count());
        break;
      }
      if (now < next) {
        const Clock::TimePoint loss = now + (options_.loss_after - silent);
        changed_.WaitUntil(mutex_, opened_ ? std::min(next, loss) : next);
        continue;
      }
      tick = true;
      next = now + options_.ping_period;
      Ping();
    }
    if (tick && options_.on_tick) options_.on_tick();
  }
  if (!why.empty()) {
    context_.TryCancel();
    End(why);
  }
  RemoveHold();
}

}  // namespace weft
