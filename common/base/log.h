// Levelled log lines on stderr. A Logger is built in main() and passed down; there is no global
// one.
#pragma once

#include <string_view>

#include "common/base/mutex.h"

namespace weft {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

class Logger {
 public:
  // Lines below `level` are dropped; the others start with "<program>: " (errors with "<program>:
  // error: ").
  Logger(std::string_view program, LogLevel level) : program_(program), level_(level) {}

  void Debug(std::string_view text) { Write(LogLevel::kDebug, text); }
  void Info(std::string_view text) { Write(LogLevel::kInfo, text); }
  void Warning(std::string_view text) { Write(LogLevel::kWarning, text); }
  void Error(std::string_view text) { Write(LogLevel::kError, text); }

  LogLevel level() const { return level_; }

 private:
  // One write per line, so that lines of several threads do not mix. `text` may hold words of files
  // and flags: newlines become spaces, other control characters \xNN.
  void Write(LogLevel level, std::string_view text);

  std::string_view program_;
  LogLevel level_;
  Mutex mutex_;
};

}  // namespace weft
