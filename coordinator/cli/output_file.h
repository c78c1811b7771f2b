// A file that a command writes: there when it is complete, and nothing before.
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
  // `path` is a regular file or does not exist, and is none of `inputs` under whatever name. Until
  // Finish a file that is there stays as it is, also if the process is killed. Errors:
  // INVALID_ARGUMENT for anything else; those of creating a file in that folder. All name the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path,
                                                            absl::Span<const std::string> inputs);
  // What was written is gone unless Finish has succeeded.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors: RESOURCE_EXHAUSTED and others of writing, naming the path.
  absl::Status Write(const void* data, size_t bytes);
  // Puts the file in its place, instead of one that is there.
  absl::Status Finish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  absl::Status OpenTemporary();
  absl::Status NameTemporary();

  std::string path_;       // where it goes, links followed
  std::string temporary_;  // its name until then; empty while it has none
  int descriptor_ = -1;
};

}  // namespace weft
