#include "coordinator/tokenizer/utf8_stream.h"

#include <utility>

#include "coordinator/tokenizer/utf8.h"

namespace weft {

std::string Utf8Stream::Append(std::string_view bytes) {
  std::string text = std::exchange(held_, {});
  text.append(bytes);
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = DecodeUtf8(text, position);
    switch (character.kind) {
      case Utf8Kind::kValid:
        out.append(text, position, character.bytes);
        break;
      case Utf8Kind::kInvalid:
        out.append(kReplacementText);
        break;
      case Utf8Kind::kTruncated:
        held_ = text.substr(position);
        return out;
    }
    position += character.bytes;
  }
  return out;
}

std::string Utf8Stream::Finish() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacementText);
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.Append(bytes);
  out.append(stream.Finish());
  return out;
}

}  // namespace weft
