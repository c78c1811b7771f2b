// Filters about numbers, and the default.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attributes.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/operations.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

constexpr double kTwoTo63 = 9223372036854775808.0;

Result Abs(Runtime&, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the filter takes no arguments");
  if (self.Is(Kind::kFloat)) return Value::Float(std::fabs(self.AsDouble()));
  if (!self.IsIntegral()) return MisuseError("abs cannot take", self);
  return self.AsInteger() < 0 ? Negate(self) : Value::Integer(self.AsInteger());
}

Result Default(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("default", arguments, {"default_value", "boolean"}));
  const bool absent = self.Is(Kind::kUndefined) || (bound.Flag(1, false) && !Truth(self));
  if (!absent) return self;
  return bound.Given(0) ? bound[0] : runtime.String("");
}

absl::StatusOr<std::optional<int64_t>> Truncated(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (number >= kTwoTo63 || number < -kTwoTo63) {
    return Error("an integer does not fit into 64 bits");
  }
  return static_cast<int64_t>(number);
}

Result ToInteger(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("int", arguments, {"default", "base"}));
  if (self.Is(Kind::kUndefined)) return MisuseError("int cannot take", self);
  const Value fallback = bound.Given(0) ? bound[0] : Value::Integer(0);
  std::optional<int64_t> integer;
  if (self.IsIntegral()) {
    integer = self.AsInteger();
  } else if (self.Is(Kind::kFloat)) {
    ASSIGN_OR_RETURN(integer, Truncated(self.AsDouble()));
  } else if (self.Is(Kind::kString)) {
    ASSIGN_OR_RETURN(const int64_t base, bound.Integer(1, 10));
    if (!runtime.ChargeBytes(self.AsString().size())) return runtime.status();
    const bool valid_base = base == 0 || (base >= 2 && base <= 36);
    if (valid_base) integer = ParseInteger(self.AsString(), static_cast<int>(base));
    if (!integer.has_value()) {
      const std::optional<double> number = ParseFloat(self.AsString());
      if (number.has_value() && std::isfinite(*number)) {
        ASSIGN_OR_RETURN(integer, Truncated(*number));
      }
    }
  }
  return integer.has_value() ? Value::Integer(*integer) : fallback;
}

Result ToFloat(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("float", arguments, {"default"}));
  if (self.Is(Kind::kUndefined)) return MisuseError("float cannot take", self);
  if (self.IsNumber()) return Value::Float(self.AsDouble());
  if (self.Is(Kind::kString)) {
    if (!runtime.ChargeBytes(self.AsString().size())) return runtime.status();
    if (const auto number = ParseFloat(self.AsString())) return Value::Float(*number);
  }
  return bound.Given(0) ? bound[0] : Value::Float(0.0);
}

// Half to even on the exact decimal value, as Python's round().
double RoundToPrecision(double value, int precision) {
  if (precision >= 0) {
    char buffer[512];
    std::snprintf(buffer, sizeof(buffer), "%.*f", std::min(precision, 100), value);
    return std::strtod(buffer, nullptr);
  }
  const double unit = std::pow(10.0, -precision);
  return std::nearbyint(value / unit) * unit;
}

int64_t RoundIntegerToTens(int64_t value, int64_t digits) {
  int64_t unit = 1;
  for (int64_t i = 0; i < digits; ++i) {
    if (unit > INT64_MAX / 10) return 0;
    unit *= 10;
  }
  const int64_t rest = value % unit;
  const int64_t whole = value - rest;
  const int64_t magnitude = rest < 0 ? -rest : rest;
  const bool odd = (whole / unit) % 2 != 0;
  const bool away = magnitude > unit - magnitude || (magnitude == unit - magnitude && odd);
  int64_t result = whole;
  if (away && __builtin_add_overflow(whole, value < 0 ? -unit : unit, &result)) return whole;
  return result;
}

Result Round(Runtime&, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("round", arguments, {"precision", "method"}));
  ASSIGN_OR_RETURN(const int64_t precision, bound.Integer(0, 0));
  ASSIGN_OR_RETURN(const std::string method, bound.Text(1, "common"));
  if (method != "common" && method != "ceil" && method != "floor") {
    return Error("the method of round is common, ceil or floor");
  }
  if (!self.IsNumber()) return MisuseError("round cannot take", self);
  if (precision < -300 || precision > 300) return Error("the precision of round is too large");
  if (method == "common") {
    if (self.Is(Kind::kFloat)) {
      if (!std::isfinite(self.AsDouble())) return self;
      return Value::Float(RoundToPrecision(self.AsDouble(), static_cast<int>(precision)));
    }
    if (precision >= 0) return Value::Integer(self.AsInteger());
    return Value::Integer(RoundIntegerToTens(self.AsInteger(), -precision));
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.AsDouble() * unit;
  if (!std::isfinite(scaled)) return Error("round cannot take so large a number");
  // Python has an integer in between, so there is no negative zero.
  const double whole = (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0;
  return Value::Float(whole / unit);
}

// The attribute itself, never a key of a dict.
Result Attr(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("attr", arguments, {"name"}, 1));
  ASSIGN_OR_RETURN(const std::string name, bound.Text(0, ""));
  if (self.Is(Kind::kMapping)) {
    if (auto method = ContainerMethod(runtime, self, name)) return *std::move(method);
    return Value::Missing(absl::StrCat("'dict' has no attribute '", name, "'"));
  }
  return AttributeOf(runtime, self, name);
}

constexpr FilterRow kFilters[] = {
    {"abs", Abs},       {"attr", Attr},     {"d", Default},   {"default", Default},
    {"float", ToFloat}, {"int", ToInteger}, {"round", Round},
};

}  // namespace

std::span<const FilterRow> NumberFilters() { return kFilters; }

}  // namespace weft::jinja
