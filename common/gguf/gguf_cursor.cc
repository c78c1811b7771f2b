#include "common/gguf/gguf_cursor.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/gguf/gguf_format.h"

namespace weft {
namespace {

// Longest piece of a file's text in an error message.
constexpr size_t kMaxShownBytes = 80;
constexpr size_t kMaxShownPathBytes = 1024;

}  // namespace

int64_t GgufStringCost(size_t length) {
  // A string of up to 15 bytes lives in its object; a longer one takes a block with the allocator's
  // header.
  constexpr size_t kInlineLength = 15;
  constexpr size_t kBlockCost = 24;
  return static_cast<int64_t>(sizeof(std::string) +
                              (length > kInlineLength ? length + kBlockCost : 0));
}

std::string GgufField::Text() const {
  std::string text(prefix);
  if (name.empty()) {
    if (index >= 0) absl::StrAppend(&text, index);
  } else {
    text += EscapedText(name, kMaxShownBytes);
    if (index >= 0) absl::StrAppend(&text, "[", index, "]");
  }
  return absl::StrCat(text, AbslView(suffix));
}

absl::Status GgufCursor::Error(const GgufField& field, const std::string& value,
                               const std::string& why, int64_t at) const {
  return absl::InvalidArgumentError(
      absl::StrCat(EscapedText(file_name_, kMaxShownPathBytes), ": field '", field.Text(),
                   "' = ", EscapedText(value, kMaxShownBytes), ": ", why, " (at byte ", at, ")"));
}

absl::Status GgufCursor::Truncated(const GgufField& field, int64_t wanted) const {
  return Error(field, "nothing",
               absl::StrCat("the file ends: ", wanted, " bytes wanted, ", remaining(), " left"),
               position_);
}

absl::StatusOr<bool> GgufCursor::Bool(const GgufField& field) {
  const int64_t at = position_;
  ASSIGN_OR_RETURN(const uint8_t value, Scalar<uint8_t>(field));
  if (value > 1) return Error(field, absl::StrCat(value), "a bool must be 0 or 1", at);
  return value == 1;
}

absl::StatusOr<std::string_view> GgufCursor::String(const GgufField& field, int64_t max_length) {
  const int64_t at = position_;
  ASSIGN_OR_RETURN(const uint64_t length, Scalar<uint64_t>(field));
  if (length > static_cast<uint64_t>(remaining())) {
    return Error(field, absl::StrCat(length),
                 absl::StrCat("string longer than the ", remaining(), " bytes left of the file"),
                 at);
  }
  if (length > static_cast<uint64_t>(max_length)) {
    return Error(field, absl::StrCat(length),
                 absl::StrCat("string longer than the limit of ", max_length), at);
  }
  const char* begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
  position_ += static_cast<int64_t>(length);
  return std::string_view(begin, length);
}

absl::StatusOr<std::string_view> GgufCursor::Name(const GgufField& field, int64_t max_length) {
  const int64_t at = position_;
  ASSIGN_OR_RETURN(const std::string_view name, String(field, max_length));
  if (name.empty()) return Error(field, "''", "must not be empty", at);
  if (!IsUtf8(name)) return Error(field, std::string(name), "is not valid UTF-8", at);
  return name;
}

absl::StatusOr<absl::Span<const uint8_t>> GgufCursor::Bytes(const GgufField& field,
                                                            int64_t length) {
  if (length > remaining()) return Truncated(field, length);
  const absl::Span<const uint8_t> result = bytes_.subspan(position_, length);
  position_ += length;
  return result;
}

absl::Status GgufCursor::Charge(const GgufField& field, int64_t bytes) {
  // A mapped file is far below 2^62 bytes, so the limit cannot overflow; what is charged may.
  const int64_t limit = kGgufMemoryFactor * size() + memory_allowance_bytes_;
  const std::optional<int64_t> sum = CheckedAdd(charged_bytes_, bytes);
  if (!sum || *sum > limit) {
    return Error(field, absl::StrCat(bytes, " bytes"),
                 absl::StrCat("would take more memory than the limit of ", limit,
                              " bytes for a file of this size"),
                 position_);
  }
  charged_bytes_ = *sum;
  return absl::OkStatus();
}

}  // namespace weft
