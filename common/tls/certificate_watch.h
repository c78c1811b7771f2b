// Looks at the certificate of a process now and then: what people should know about it, while there
// is time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/tls/tls_folder.h"

namespace weft {

class CertificateWatch {
 public:
  using UnixClock = std::function<int64_t()>;

  // Of what was loaded from there. `logger` and `clock` outlive it; `unix_clock` may be empty: the
  // system's.
  CertificateWatch(const TlsFolder& folder, const Clock& clock, Logger& logger,
                   UnixClock unix_clock = {});

  // To be called often, by one thread; reads the files every few seconds. Says once that they
  // changed, or that they are unusable; and every day, from two weeks before its end, that the
  // certificate ends.
  void Look();

  // Until its end, below 0 after it. Any thread.
  double days_left() const;

 private:
  void Reload(int64_t now);
  void Remind(int64_t now);

  const std::string path_;
  const TlsRole role_;
  const Clock& clock_;
  Logger& logger_;
  const UnixClock unix_clock_;
  std::string name_;
  std::string sha256_;
  std::string complaint_;  // the last one about the files
  Clock::TimePoint next_look_;
  int64_t next_reminder_ = 0;  // Unix time
  std::atomic<int64_t> not_after_;
};

}  // namespace weft
