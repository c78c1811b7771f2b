// Python's operators on values.
//
// Functions that return a plain result may have stopped early because a limit was passed; then
// runtime.exhausted() holds and the result means nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

// INVALID_ARGUMENT. Every error of a template starts as one of these; the interpreter adds the
// line.
absl::Status Error(std::string_view words);
// For a use of `value` that its type does not allow, "cannot iterate over 'int'": says what is
// undefined if that is the cause.
absl::Status MisuseError(std::string_view use, const Value& value);

bool Truth(const Value& value);
bool Equal(Runtime& runtime, const Value& a, const Value& b);
// Error: types that have no order among each other.
absl::StatusOr<std::partial_ordering> Order(Runtime& runtime, const Value& a, const Value& b);
// Whether `value` can be a key of a dict.
absl::Status CheckKey(Runtime& runtime, const Value& value);
// The value under `key`, or null.
const Value* FindKey(Runtime& runtime, const Mapping& mapping, const Value& key);
// item in container.
absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item);

// Whether `value` can be walked through.
bool IsIterable(const Value& value);
// All elements: of a text its characters, of a dict its keys, of undefined none.
absl::StatusOr<std::vector<Value>> Elements(Runtime& runtime, const Value& value);
absl::StatusOr<int64_t> Length(const Value& value);
// object[index]: nothing where there is no such element or the types do not fit.
std::optional<Value> ItemAt(Runtime& runtime, const Value& object, const Value& index);

struct SliceBounds {
  Value start = Value::None();
  Value stop = Value::None();
  Value step = Value::None();
};
absl::StatusOr<Value> SliceOf(Runtime& runtime, const Value& object, const SliceBounds& bounds);

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
absl::StatusOr<Value> Apply(Runtime& runtime, Arithmetic operation, const Value& a, const Value& b);
absl::StatusOr<Value> Negate(const Value& value);

// `text` as a number in Python's int() and float(): white space around and '_' between digits are
// allowed. Nothing where it is none or does not fit into 64 bits.
std::optional<int64_t> ParseInteger(std::string_view text, int base);
std::optional<double> ParseFloat(std::string_view text);

}  // namespace weft::jinja
