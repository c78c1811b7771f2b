// A read-only memory mapping of a whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

class MappedFile {
 public:
  // Maps `path`. An empty file maps to an empty span.
  // Errors: NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (not a regular file), INTERNAL; all name
  // the path.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Valid for the life of this object. Reading beyond a file that was truncated after Open raises
  // SIGBUS, which no check here can prevent; weft never truncates a file that it serves from.
  absl::Span<const uint8_t> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the kernel that [offset, offset + length) will be read soon. Advice only.
  void WillNeed(size_t offset, size_t length) const;

  // Reads one byte of every page of [offset, offset + length), so that a slow disk shows now and
  // not at the first use. Calls `read` with the bytes of each piece of at most 8 MiB that is in
  // memory; its error ends the work. Errors: OUT_OF_RANGE.
  absl::Status Touch(size_t offset, size_t length,
                     absl::FunctionRef<absl::Status(int64_t bytes)> read) const;

 private:
  MappedFile(std::string path, const uint8_t* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const uint8_t* data_;
  size_t size_;
};

}  // namespace weft
