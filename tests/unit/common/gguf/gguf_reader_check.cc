#include "tests/unit/common/gguf/gguf_reader_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/gguf/gguf_reader.h"
#include "common/gguf/gguf_value_text.h"
#include "common/gguf/gguf_writer.h"

namespace weft {
namespace {

bool IsPrintableLine(std::string_view text) {
  return IsUtf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<uint8_t>(c) < 0x20 || c == 0x7F;
         });
}

void CheckTensors(const GgufContents& contents, int64_t file_bytes) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<GgufTensorSpec> specs;
  for (const GgufTensor& tensor : contents.tensors) {
    WEFT_CHECK(tensor.bytes > 0 && tensor.bytes <= file_bytes);
    WEFT_CHECK(tensor.file_offset >= contents.data_offset);
    WEFT_CHECK(tensor.file_offset <= file_bytes - tensor.bytes);
    WEFT_CHECK(tensor.file_offset % contents.alignment == 0);
    WEFT_CHECK(ByteExtent(tensor.layout) == tensor.bytes);
    WEFT_CHECK(IsContiguous(tensor.layout));
    ranges.emplace_back(tensor.file_offset, tensor.file_offset + tensor.bytes);
    specs.push_back({tensor.name, tensor.layout});
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    WEFT_CHECK(ranges[i - 1].second <= ranges[i].first);
  }
  WEFT_CHECK(GgufHeaderBytes(contents.metadata, specs).ok());
}

void CheckMetadata(const GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    WEFT_CHECK(metadata.Find(key) == &value);
    WEFT_CHECK(IsPrintableLine(GgufValueText(value, {})));
  }
  const absl::StatusOr<std::string> written = GgufHeaderBytes(metadata, {});
  WEFT_CHECK(written.ok());
  const absl::StatusOr<GgufContents> again =
      ReadGguf({reinterpret_cast<const uint8_t*>(written->data()), written->size()}, "again");
  WEFT_CHECK(again.ok());
  const absl::StatusOr<std::string> written_again = GgufHeaderBytes(again->metadata, {});
  WEFT_CHECK(written_again.ok() && *written_again == *written);
}

}  // namespace

bool CheckGgufReader(absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<GgufContents> contents = ReadGguf(bytes, "fuzz.gguf");
  if (!contents.ok()) {
    const std::string message(contents.status().message());
    WEFT_CHECK(contents.status().code() == absl::StatusCode::kInvalidArgument);
    WEFT_CHECK(message.starts_with("fuzz.gguf: field '"));
    WEFT_CHECK(message.size() < 1000);
    WEFT_CHECK(IsPrintableLine(message));
    return false;
  }
  CheckTensors(*contents, static_cast<int64_t>(bytes.size()));
  CheckMetadata(contents->metadata);
  return true;
}

}  // namespace weft
