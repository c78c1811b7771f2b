// A GGUF file in memory, to be changed and written again: how tests make a broken or unusual model
// out of a good one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/gguf/gguf_metadata.h"
#include "common/gguf/gguf_writer.h"

namespace weft {

struct EditableGguf {
  GgufMetadata metadata;
  std::vector<GgufTensorSpec> tensors;
  std::vector<std::vector<uint8_t>> data;  // of tensors[i]

  // Aborts the test program if the file cannot be read.
  static EditableGguf Read(const std::string& path);

  // The tensor's position; aborts if there is none of that name.
  size_t Find(std::string_view name) const;
  void Remove(std::string_view name);
  // Adds a packed tensor with zero bytes.
  void AddZeros(std::string_view name, DType dtype, const Extents& ne);
  // Writes the file and returns `path`; aborts if it cannot be written.
  std::string Write(const std::string& path) const;
};

}  // namespace weft
