// Numbers as in Python, except that integers have 64 bits and a result outside them is an error.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/text_format.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

absl::Status OverflowError() { return Error("an integer does not fit into 64 bits"); }
absl::Status ZeroError() { return Error("division by zero"); }

absl::StatusOr<Value> CheckedInteger(std::optional<int64_t> value) {
  if (!value.has_value()) return OverflowError();
  return Value::Integer(*value);
}

std::optional<int64_t> CheckedSubtract(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> CheckedPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if (exponent & 1) {
      const auto product = CheckedMultiply(result, base);
      if (!product.has_value()) return std::nullopt;
      result = *product;
    }
    exponent >>= 1;
    if (exponent == 0) return result;
    const auto square = CheckedMultiply(base, base);
    if (!square.has_value()) return std::nullopt;
    base = *square;
  }
}

absl::StatusOr<Value> FloatPower(double a, double b) {
  if (a == 0 && b < 0) return ZeroError();
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::trunc(b)) {
    return Error("a root of a negative number");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    return Error("a number is too large");
  }
  return Value::Float(result);
}

// Quotient and remainder with the sign of the divisor.
absl::StatusOr<Value> IntegerDivision(Arithmetic operation, int64_t a, int64_t b) {
  if (b == 0) return ZeroError();
  if (b == -1) {  // the machine cannot divide the least integer by it
    if (operation == Arithmetic::kModulo) return Value::Integer(0);
    return CheckedInteger(CheckedSubtract(0, a));
  }
  int64_t quotient = a / b;
  int64_t remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    remainder += b;
    --quotient;
  }
  return Value::Integer(operation == Arithmetic::kModulo ? remainder : quotient);
}

// The same for floats, signs of zeros included.
absl::StatusOr<Value> FloatDivision(Arithmetic operation, double a, double b) {
  if (b == 0) return ZeroError();
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (operation == Arithmetic::kModulo) return Value::Float(remainder);
  if (quotient == 0) return Value::Float(std::copysign(0.0, a / b));
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  return Value::Float(whole);
}

absl::StatusOr<Value> ApplyIntegers(Arithmetic operation, int64_t a, int64_t b) {
  switch (operation) {
    case Arithmetic::kAdd:
      return CheckedInteger(CheckedAdd(a, b));
    case Arithmetic::kSubtract:
      return CheckedInteger(CheckedSubtract(a, b));
    case Arithmetic::kMultiply:
      return CheckedInteger(CheckedMultiply(a, b));
    case Arithmetic::kDivide:
      if (b == 0) return ZeroError();
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    case Arithmetic::kFloorDivide:
    case Arithmetic::kModulo:
      return IntegerDivision(operation, a, b);
    case Arithmetic::kPower:
      if (b < 0) return FloatPower(static_cast<double>(a), static_cast<double>(b));
      return CheckedInteger(CheckedPower(a, b));
  }
  return Error("unknown operation");
}

absl::StatusOr<Value> ApplyFloats(Arithmetic operation, double a, double b) {
  switch (operation) {
    case Arithmetic::kAdd:
      return Value::Float(a + b);
    case Arithmetic::kSubtract:
      return Value::Float(a - b);
    case Arithmetic::kMultiply:
      return Value::Float(a * b);
    case Arithmetic::kDivide:
      if (b == 0) return ZeroError();
      return Value::Float(a / b);
    case Arithmetic::kFloorDivide:
    case Arithmetic::kModulo:
      return FloatDivision(operation, a, b);
    case Arithmetic::kPower:
      return FloatPower(a, b);
  }
  return Error("unknown operation");
}

// Text, list or tuple.
bool CanConcatenate(const Value& value) {
  if (value.Is(Kind::kString)) return true;
  return value.Is(Kind::kSequence) && (value.AsSequence().form == Sequence::Form::kList ||
                                       value.AsSequence().form == Sequence::Form::kTuple);
}

absl::StatusOr<Value> Concatenate(Runtime& runtime, const Value& a, const Value& b) {
  if (a.Is(Kind::kString)) {
    if (!runtime.HasRoom(static_cast<int64_t>(a.AsString().size() + b.AsString().size()))) {
      return runtime.status();
    }
    return runtime.String(absl::StrCat(a.AsString(), b.AsString()));
  }
  std::vector<Value> items = a.AsSequence().items;
  items.insert(items.end(), b.AsSequence().items.begin(), b.AsSequence().items.end());
  return runtime.Make(a.AsSequence().form, std::move(items));
}

absl::StatusOr<Value> Repeat(Runtime& runtime, const Value& value, int64_t count) {
  const bool is_text = value.Is(Kind::kString);
  const auto size =
      static_cast<int64_t>(is_text ? value.AsString().size() : value.AsSequence().items.size());
  count = size == 0 ? 0 : std::max<int64_t>(count, 0);
  const int64_t unit = is_text ? 1 : static_cast<int64_t>(sizeof(Value));
  if (!runtime.HasRoom(SaturatingMultiply(SaturatingMultiply(size, count), unit))) {
    return runtime.status();
  }
  if (is_text) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += value.AsString();
    return runtime.String(std::move(text));
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) {
    items.insert(items.end(), value.AsSequence().items.begin(), value.AsSequence().items.end());
  }
  return runtime.Make(value.AsSequence().form, std::move(items));
}

std::string_view Trim(std::string_view text) {
  text.remove_prefix(LeadingSpace(text));
  text.remove_suffix(TrailingSpace(text));
  return text;
}

// Takes out each '_' between digits; false where one stands elsewhere.
bool RemoveUnderscores(std::string* digits) {
  const auto is_digit = [&](size_t i) {
    return i < digits->size() && std::isalnum(static_cast<unsigned char>((*digits)[i])) != 0;
  };
  std::string out;
  for (size_t i = 0; i < digits->size(); ++i) {
    if ((*digits)[i] != '_') {
      out.push_back((*digits)[i]);
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return false;
    }
  }
  *digits = std::move(out);
  return true;
}

}  // namespace

absl::StatusOr<Value> Apply(Runtime& runtime, Arithmetic operation, const Value& a,
                            const Value& b) {
  if (a.IsIntegral() && b.IsIntegral()) {
    return ApplyIntegers(operation, a.AsInteger(), b.AsInteger());
  }
  if (a.IsNumber() && b.IsNumber()) return ApplyFloats(operation, a.AsDouble(), b.AsDouble());
  if (operation == Arithmetic::kModulo && a.Is(Kind::kString)) {
    return FormatPercent(runtime, a.AsString(), b);
  }
  if (operation == Arithmetic::kAdd && CanConcatenate(a) && a.TypeName() == b.TypeName()) {
    return Concatenate(runtime, a, b);
  }
  if (operation == Arithmetic::kMultiply && CanConcatenate(a) && b.IsIntegral()) {
    return Repeat(runtime, a, b.AsInteger());
  }
  if (operation == Arithmetic::kMultiply && a.IsIntegral() && CanConcatenate(b)) {
    return Repeat(runtime, b, a.AsInteger());
  }
  const std::string use =
      absl::StrCat("'", AbslView(kSigns[static_cast<size_t>(operation)]), "' cannot take");
  if (a.Is(Kind::kUndefined)) return MisuseError(use, a);
  if (b.Is(Kind::kUndefined)) return MisuseError(use, b);
  return Error(
      absl::StrCat(use, " '", AbslView(a.TypeName()), "' and '", AbslView(b.TypeName()), "'"));
}

absl::StatusOr<Value> Negate(const Value& value) {
  if (value.IsIntegral()) return CheckedInteger(CheckedSubtract(0, value.AsInteger()));
  if (value.Is(Kind::kFloat)) return Value::Float(-value.AsDouble());
  return MisuseError("'-' cannot take", value);
}

std::optional<int64_t> ParseInteger(std::string_view text, int base) {
  std::string digits(Trim(text));
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.erase(0, 1);
  int prefix_base = 0;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    prefix_base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    digits.erase(0, digits[2] == '_' ? 3 : 2);
    base = prefix_base;
  } else if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of("0_") != std::string::npos) {
      return std::nullopt;
    }
    base = 10;
  }
  if (!RemoveUnderscores(&digits) || digits.empty() || digits[0] == '-') return std::nullopt;
  if (negative) digits = absl::StrCat("-", digits);
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<double> ParseFloat(std::string_view text) {
  std::string digits(Trim(text));
  if (!digits.empty() && digits[0] == '+') {
    digits.erase(0, 1);
    if (!digits.empty() && digits[0] == '-') return std::nullopt;
  }
  if (digits.empty() || digits[0] == '+' || !RemoveUnderscores(&digits)) return std::nullopt;
  if (digits.find_first_of("xX(") != std::string::npos) return std::nullopt;
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (stopped != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Python's float() of too large a number is infinite, of too small a one zero.
    const bool negative = digits[0] == '-';
    const size_t exponent = digits.find_first_of("eE");
    const bool small = exponent != std::string::npos && digits.compare(exponent + 1, 1, "-") == 0;
    const double magnitude = small ? 0.0 : std::numeric_limits<double>::infinity();
    return negative ? -magnitude : magnitude;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace weft::jinja
