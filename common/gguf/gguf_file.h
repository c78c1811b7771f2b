// A GGUF model on disk: one file or a set of split files, memory-mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"
#include "common/gguf/gguf_metadata.h"
#include "common/gguf/gguf_reader.h"

namespace weft {

class GgufFile {
 public:
  // Opens `path`, and where it is part of a set ("name-00001-of-00003.gguf", split.* keys) all its
  // siblings. Metadata is that of the first part. Nothing but headers is read. Errors: one line
  // naming file, field and value; INVALID_ARGUMENT for anything wrong inside a file, NOT_FOUND for
  // a missing one.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);

  const GgufMetadata& metadata() const { return metadata_; }
  absl::Span<const GgufTensor> tensors() const { return tensors_; }
  // Nothing if there is no tensor of that name.
  const GgufTensor* FindTensor(std::string_view name) const;
  // The tensor's bytes inside the mapping; valid for the life of this object.
  absl::Span<const uint8_t> TensorBytes(const GgufTensor& tensor) const;
  const MappedFile& file(int index) const { return *files_[index]; }
  // Where that file's tensor data starts; at most its size.
  int64_t data_offset(int index) const { return data_offsets_[index]; }
  int file_count() const { return static_cast<int>(files_.size()); }
  int version() const { return version_; }

 private:
  GgufFile() = default;

  absl::Status AddPart(std::unique_ptr<MappedFile> file, GgufContents contents);

  int version_ = 0;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<int64_t> data_offsets_;  // by file
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> index_;
};

}  // namespace weft
