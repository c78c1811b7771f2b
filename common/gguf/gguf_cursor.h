// Reads the fields of a GGUF file in order, each checked against what is left of the file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// The name of a field for error messages, made into text only where one is needed: prefix, then the
// quoted name or else the index, "[index]" if there are both, then the suffix. {"key ", "", 5, "
// length"} is "key 5 length" and
// {"", "tokens", 17, " length"} is "tokens[17] length".
struct GgufField {
  std::string_view prefix = {};
  std::string_view name = {};
  int64_t index = -1;
  std::string_view suffix = {};

  std::string Text() const;
};

// Upper bound of the memory that a std::string of `length` bytes takes.
int64_t GgufStringCost(size_t length);

class GgufCursor {
 public:
  // `bytes` (the whole file) and `file_name` must outlive this.
  GgufCursor(absl::Span<const uint8_t> bytes, std::string_view file_name,
             int64_t memory_allowance_bytes)
      : bytes_(bytes), file_name_(file_name), memory_allowance_bytes_(memory_allowance_bytes) {}

  int64_t position() const { return position_; }
  int64_t remaining() const { return size() - position_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  // INVALID_ARGUMENT "FILE: field 'F' = VALUE: WHY (at byte AT)".
  absl::Status Error(const GgufField& field, const std::string& value, const std::string& why,
                     int64_t at) const;

  // The next fixed-size field. Errors: INVALID_ARGUMENT if the file ends.
  template <typename T>
  absl::StatusOr<T> Scalar(const GgufField& field) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (remaining() < static_cast<int64_t>(sizeof(T))) return Truncated(field, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // One byte that must be 0 or 1.
  absl::StatusOr<bool> Bool(const GgufField& field);

  // A length (u64) and that many bytes, at most `max_length`; the view lies in the file.
  absl::StatusOr<std::string_view> String(const GgufField& field, int64_t max_length);

  // A key or tensor name: a string of 1 to `max_length` bytes of UTF-8.
  absl::StatusOr<std::string_view> Name(const GgufField& field, int64_t max_length);

  // The next `length` bytes. Errors: INVALID_ARGUMENT if the file ends before.
  absl::StatusOr<absl::Span<const uint8_t>> Bytes(const GgufField& field, int64_t length);

  // Notes that `bytes` of memory are about to be allocated on the file's behalf.
  // Errors: INVALID_ARGUMENT if that makes more than the limits allow for a file of this size.
  absl::Status Charge(const GgufField& field, int64_t bytes);

 private:
  absl::Status Truncated(const GgufField& field, int64_t wanted) const;

  absl::Span<const uint8_t> bytes_;
  std::string_view file_name_;
  int64_t memory_allowance_bytes_;
  int64_t position_ = 0;
  int64_t charged_bytes_ = 0;
};

}  // namespace weft
