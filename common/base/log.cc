#include "common/base/log.h"

#include <cstdio>
#include <string>

namespace weft {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

void Logger::Write(LogLevel level, std::string_view text) {
  if (level < level_) return;
  std::string line(program_);
  line += level == LogLevel::kError     ? ": error: "
          : level == LogLevel::kWarning ? ": warning: "
                                        : ": ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r') {
      line += ' ';
    } else if (byte < 0x20 || byte == 0x7F) {
      line += "\\x";
      line += kHexDigits[byte >> 4];
      line += kHexDigits[byte & 15];
    } else {
      line += c;
    }
  }
  line += '\n';
  MutexLock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weft
