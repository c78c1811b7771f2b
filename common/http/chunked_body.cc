#include "common/http/chunked_body.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"

namespace weft {
namespace {

constexpr size_t kMostLineBytes = 8192;
constexpr size_t kMostDigits = 15;

// Without its end. Nothing: it is too long, or the stream ended.
std::optional<std::string> ReadLine(ConnectionStream& stream) {
  std::string line;
  char byte = 0;
  while (line.size() < kMostLineBytes && stream.read(&byte, 1) == 1) {
    if (byte != '\n') {
      line.push_back(byte);
      continue;
    }
    if (line.empty() || line.back() != '\r') return std::nullopt;
    line.pop_back();
    return line;
  }
  return std::nullopt;
}

// Hexadecimal digits, then nothing or extensions.
std::optional<size_t> SizeOf(std::string_view line) {
  size_t size = 0;
  size_t digits = 0;
  while (digits < line.size() && absl::ascii_isxdigit(static_cast<unsigned char>(line[digits]))) {
    if (digits == kMostDigits) return std::nullopt;
    const char c = absl::ascii_tolower(static_cast<unsigned char>(line[digits++]));
    size = size * 16 + static_cast<size_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  const size_t end = std::min(line.find_first_not_of(" \t", digits), line.size());
  if (digits == 0 || (end < line.size() && line[end] != ';')) return std::nullopt;
  return size;
}

}  // namespace

ChunkedBody ReadChunkedBody(ConnectionStream& stream, size_t most_bytes, std::string& body) {
  std::array<char, 4096> bytes;
  while (true) {
    const std::optional<std::string> head = ReadLine(stream);
    const std::optional<size_t> size = head ? SizeOf(*head) : std::nullopt;
    if (!size) return ChunkedBody::kBroken;
    if (*size == 0) break;
    if (*size > most_bytes - body.size()) return ChunkedBody::kTooLong;
    for (size_t left = *size; left > 0;) {
      const ssize_t count = stream.read(bytes.data(), std::min(left, bytes.size()));
      if (count <= 0) return ChunkedBody::kBroken;
      body.append(bytes.data(), static_cast<size_t>(count));
      left -= static_cast<size_t>(count);
    }
    const std::optional<std::string> end = ReadLine(stream);
    if (!end || !end->empty()) return ChunkedBody::kBroken;
  }
  // Trailers, which nobody wants.
  while (true) {
    const std::optional<std::string> line = ReadLine(stream);
    if (!line) return ChunkedBody::kBroken;
    if (line->empty()) return ChunkedBody::kWhole;
  }
}

}  // namespace weft
