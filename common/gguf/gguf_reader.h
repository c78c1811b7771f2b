// Turns the bytes of one GGUF file into metadata and a table of tensors. It does no input or
// output, trusts nothing and takes memory in proportion to the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_format.h"
#include "common/gguf/gguf_metadata.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

struct GgufTensor {
  std::string name;
  TensorLayout layout;      // packed
  int file_index = 0;       // which of the split files
  int64_t file_offset = 0;  // of its first byte, from the start of that file
  int64_t bytes = 0;
};

// What the headers of one file say.
struct GgufContents {
  int version = 0;
  int64_t alignment = 0;    // of every tensor's offset
  int64_t data_offset = 0;  // of the data section, from the start of the file
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file; file_index is 0
};

// Reads versions 2 and 3. Every tensor's bytes lie inside `bytes`, aligned, and overlap no other
// tensor's; they need not be in order or without gaps. `file_name` is for messages only. Keys and
// tensor names are UTF-8; string values are kept as the bytes they are. Errors: INVALID_ARGUMENT
// "FILE: field 'F' = VALUE: why (at byte N)". Source: spec H.1 to H.3; the strict form of rules 4
// to 8 and the lenient form of rule 11.
absl::StatusOr<GgufContents> ReadGguf(absl::Span<const uint8_t> bytes, std::string_view file_name,
                                      int64_t memory_allowance_bytes = kGgufMemoryAllowanceBytes);

}  // namespace weft
