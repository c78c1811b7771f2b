// Writes GGUF files, version 3. Tensor data is streamed, so a file may be larger than memory, and
// the file appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_metadata.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// A tensor to write: its data is packed. Trailing extents of 1 are not stored.
struct GgufTensorSpec {
  std::string name;
  TensorLayout layout;
};

// Appends the value as it stands in a file: type id, then the value.
void AppendGgufValue(const GgufValue& value, std::string* out);

// All bytes of a file before its first tensor's: header, metadata, tensor table, padding. The
// alignment is that of the key general.alignment, or 32. Tensors are laid out in the given order.
// Errors: INVALID_ARGUMENT for what ReadGguf would refuse: names, extents, layouts with gaps,
// alignment, duplicates.
absl::StatusOr<std::string> GgufHeaderBytes(const GgufMetadata& metadata,
                                            absl::Span<const GgufTensorSpec> tensors);

class GgufWriter {
 public:
  // Writes the headers to a temporary file beside `path`.
  // Errors: those of GgufHeaderBytes; those of opening and writing the file.
  static absl::StatusOr<std::unique_ptr<GgufWriter>> Create(const std::string& path,
                                                            const GgufMetadata& metadata,
                                                            std::vector<GgufTensorSpec> tensors);

  // Removes the temporary file unless Finish has succeeded.
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // Appends bytes of tensor data, in pieces of any size: the data of all tensors in order, one
  // after the other, without padding (which is added here). Errors: FAILED_PRECONDITION if there
  // are more bytes than the tensors have; RESOURCE_EXHAUSTED if the disk is full.
  absl::Status Append(absl::Span<const uint8_t> bytes);

  // The tensor that the next byte belongs to; the number of tensors when all are complete.
  int tensor_index() const { return tensor_index_; }

  // Gives the file its name. Errors: FAILED_PRECONDITION unless all tensors are complete; those of
  // the file system.
  absl::Status Finish();

 private:
  GgufWriter(std::string path, std::vector<GgufTensorSpec> tensors)
      : path_(std::move(path)), tensors_(std::move(tensors)) {}

  absl::Status OpenTemporary();
  absl::Status Write(absl::Span<const uint8_t> bytes);
  absl::Status Pad();

  std::string path_;
  std::vector<GgufTensorSpec> tensors_;
  std::string temporary_path_;
  int descriptor_ = -1;
  int64_t alignment_ = 0;
  int64_t position_ = 0;  // in the file
  int tensor_index_ = 0;
  int64_t tensor_bytes_written_ = 0;
};

// Writes a whole file from memory: data[i] is that of tensors[i].
absl::Status WriteGgufFile(const std::string& path, const GgufMetadata& metadata,
                           std::vector<GgufTensorSpec> tensors,
                           absl::Span<const absl::Span<const uint8_t>> data);

}  // namespace weft
