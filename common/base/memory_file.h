// Files for libraries that take nothing but a path, with text that nobody else should change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

// A file in memory only: no folder has it, and it ends with the process. One thread replaces, any
// may read.
class MemoryFile {
 public:
  // `name` shows up in /proc/PID/maps only. Errors: of the system; FAILED_PRECONDITION where
  // nothing of this process can be opened by path (no /proc).
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Create(const char* name,
                                                            std::string_view text);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // This process opens it by this path, for reading.
  std::string path() const;
  // At once: who opens it afterwards finds the new text, who has it open keeps the old one. Every
  // text has another time of modification (in seconds), so that readers which look at that before
  // and after can tell. Errors: of the system; then the old text stays.
  absl::Status Replace(std::string_view text);

 private:
  explicit MemoryFile(const char* name) : name_(name) {}

  const std::string name_;
  int descriptor_ = -1;
  int64_t replaced_ = 0;
};

}  // namespace weft
