#include "common/base/log.h"

#include <cstdio>
#include <string>

namespace weft {

void Logger::Write(LogLevel level, std::string_view text) {
  if (level < level_) return;
  std::string line(program_);
  line += level == LogLevel::kError     ? ": error: "
          : level == LogLevel::kWarning ? ": warning: "
                                        : ": ";
  for (const char c : text) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  MutexLock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weft
