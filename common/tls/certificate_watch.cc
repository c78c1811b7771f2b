#include "common/tls/certificate_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/unix_time.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kLook{5};

}  // namespace

CertificateWatch::CertificateWatch(const TlsFolder& folder, const Clock& clock, Logger& logger,
                                   UnixClock unix_clock)
    : path_(folder.path),
      role_(folder.facts.role),
      clock_(clock),
      logger_(logger),
      unix_clock_(unix_clock ? std::move(unix_clock) : UnixSeconds),
      name_(folder.facts.name),
      sha256_(folder.facts.sha256),
      next_look_(clock.Now()),
      not_after_(folder.facts.not_after) {}

void CertificateWatch::Look() {
  const Clock::TimePoint time = clock_.Now();
  if (time < next_look_) return;
  next_look_ = time + kLook;
  const int64_t now = unix_clock_();
  Reload(now);
  Remind(now);
}

void CertificateWatch::Reload(int64_t now) {
  const absl::StatusOr<TlsFolder> loaded = LoadTlsFolder(path_, role_, now);
  if (!loaded.ok()) {
    if (now > not_after_) return;  // the reminders say so
    // Without the time of day, which may stand at its end.
    const absl::string_view text = loaded.status().message();
    std::string complaint(text.substr(0, text.rfind("; it is ")));
    if (complaint != complaint_) logger_.Warning(StdView(absl::StrCat("TLS: ", complaint)));
    complaint_ = std::move(complaint);
    return;
  }
  complaint_.clear();
  if (loaded->facts.sha256 == sha256_) return;
  name_ = loaded->facts.name;
  sha256_ = loaded->facts.sha256;
  not_after_ = loaded->facts.not_after;
  next_reminder_ = 0;
  logger_.Info(StdView(absl::StrCat("TLS: new certificate ", CertificateText(loaded->facts),
                                    " until ", UtcText(not_after_))));
}

void CertificateWatch::Remind(int64_t now) {
  const int64_t left = not_after_ - now;
  if (left > kSoonEndingDays * kDaySeconds || now < next_reminder_) return;
  next_reminder_ = now + kDaySeconds;
  if (left >= 0) {
    // Once more when it has happened.
    next_reminder_ = std::min(next_reminder_, not_after_ + 1);
    logger_.Warning(
        StdView(absl::StrCat("TLS: certificate '", name_, "' ends in ", left / kDaySeconds,
                             " days, on ", UtcText(not_after_), ": renew it")));
    return;
  }
  logger_.Warning(
      StdView(absl::StrCat("TLS: certificate '", name_, "' has expired on ", UtcText(not_after_),
                           ": nobody can connect until ", path_, " has a new one")));
}

double CertificateWatch::days_left() const {
  return static_cast<double>(not_after_ - unix_clock_()) / static_cast<double>(kDaySeconds);
}

}  // namespace weft
