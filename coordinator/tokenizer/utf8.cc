#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

// What may follow a lead byte: how many continuation bytes, and the range of the first one (the
// others are 80..BF).
struct LeadByte {
  int continuation_count = -1;  // -1: not a lead byte
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

LeadByte Classify(uint8_t lead) {
  if (lead < 0x80) return {.continuation_count = 0};
  if (lead < 0xC2) return {};
  if (lead < 0xE0) return {.continuation_count = 1};
  if (lead == 0xE0) return {.continuation_count = 2, .low = 0xA0};
  if (lead == 0xED) return {.continuation_count = 2, .high = 0x9F};
  if (lead < 0xF0) return {.continuation_count = 2};
  if (lead == 0xF0) return {.continuation_count = 3, .low = 0x90};
  if (lead == 0xF4) return {.continuation_count = 3, .high = 0x8F};
  if (lead < 0xF4) return {.continuation_count = 3};
  return {};
}

}  // namespace

Utf8Character DecodeUtf8(std::string_view text, size_t position) {
  const auto lead = static_cast<uint8_t>(text[position]);
  const LeadByte form = Classify(lead);
  if (form.continuation_count < 0) return {};
  if (form.continuation_count == 0) return {Utf8Kind::kValid, lead, 1};
  char32_t code_point = lead & (0x3Fu >> form.continuation_count);
  for (int i = 1; i <= form.continuation_count; ++i) {
    if (position + i >= text.size()) return {Utf8Kind::kTruncated, kReplacementCharacter, i};
    const auto byte = static_cast<uint8_t>(text[position + i]);
    const uint8_t low = i == 1 ? form.low : 0x80;
    const uint8_t high = i == 1 ? form.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::kInvalid, kReplacementCharacter, i};
    code_point = (code_point << 6) | (byte & 0x3Fu);
  }
  return {Utf8Kind::kValid, code_point, form.continuation_count + 1};
}

void AppendUtf8(char32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
    return;
  }
  const int continuation_count = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  const uint32_t lead = continuation_count == 1 ? 0xC0u : continuation_count == 2 ? 0xE0u : 0xF0u;
  out->push_back(static_cast<char>(lead | (code_point >> (6 * continuation_count))));
  for (int i = continuation_count - 1; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80u | ((code_point >> (6 * i)) & 0x3Fu)));
  }
}

bool IsValidUtf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = DecodeUtf8(text, position);
    if (character.kind != Utf8Kind::kValid) return false;
    position += character.bytes;
  }
  return true;
}

}  // namespace weft
