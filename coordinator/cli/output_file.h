// A file that a command writes: created only where that cannot hurt, gone again unless it was
// finished.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

class OutputFile {
 public:
  // Creates or empties `path`, which is a regular file or does not exist, and none of `inputs`
  // under whatever name. Errors: INVALID_ARGUMENT for anything else; those of opening the file. All
  // name the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path,
                                                            absl::Span<const std::string> inputs);
  // Removes the file unless Finish has succeeded.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors: RESOURCE_EXHAUSTED and others of writing, naming the path.
  absl::Status Write(const void* data, size_t bytes);
  absl::Status Finish();

 private:
  OutputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  bool finished_ = false;
};

}  // namespace weft
