#include "tests/support/editable_gguf.h"

#include <cstdio>
#include <cstdlib>

#include "common/gguf/gguf_file.h"

namespace weft {
namespace {

void AbortUnless(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::abort();
}

}  // namespace

EditableGguf EditableGguf::Read(const std::string& path) {
  const auto file = GgufFile::Open(path);
  AbortUnless(file.status());
  EditableGguf result;
  result.metadata = (*file)->metadata();
  for (const GgufTensor& tensor : (*file)->tensors()) {
    const absl::Span<const uint8_t> bytes = (*file)->TensorBytes(tensor);
    result.tensors.push_back({tensor.name, tensor.layout});
    result.data.emplace_back(bytes.begin(), bytes.end());
  }
  return result;
}

size_t EditableGguf::Find(std::string_view name) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
  }
  std::fprintf(stderr, "no tensor %s\n", std::string(name).c_str());
  std::abort();
}

void EditableGguf::Remove(std::string_view name) {
  const auto index = static_cast<std::ptrdiff_t>(Find(name));
  tensors.erase(tensors.begin() + index);
  data.erase(data.begin() + index);
}

void EditableGguf::AddZeros(std::string_view name, DType dtype, const Extents& ne) {
  const auto layout = PackedLayout(dtype, ne);
  AbortUnless(layout.status());
  tensors.push_back({std::string(name), *layout});
  data.emplace_back(static_cast<size_t>(*ByteExtent(*layout)), uint8_t{0});
}

std::string EditableGguf::Write(const std::string& path) const {
  std::vector<absl::Span<const uint8_t>> spans(data.begin(), data.end());
  AbortUnless(WriteGgufFile(path, metadata, tensors, spans));
  return path;
}

}  // namespace weft
