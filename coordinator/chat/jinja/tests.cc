#include "coordinator/chat/jinja/tests.h"

#include "absl/strings/str_cat.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<bool>;

// A test without arguments on the value alone.
template <bool (*kPredicate)(const Value&)>
Result Plain(Runtime&, const Value& value, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the test takes no arguments");
  return kPredicate(value);
}

bool IsDefined(const Value& value) { return !value.Is(Kind::kUndefined); }
bool IsUndefined(const Value& value) { return value.Is(Kind::kUndefined); }
bool IsNone(const Value& value) { return value.Is(Kind::kNone); }
bool IsBoolean(const Value& value) { return value.Is(Kind::kBool); }
bool IsTrue(const Value& value) { return value.Is(Kind::kBool) && value.AsBool(); }
bool IsFalse(const Value& value) { return value.Is(Kind::kBool) && !value.AsBool(); }
bool IsInteger(const Value& value) { return value.Is(Kind::kInteger); }
bool IsFloat(const Value& value) { return value.Is(Kind::kFloat); }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsString(const Value& value) { return value.Is(Kind::kString); }
bool IsMapping(const Value& value) { return value.Is(Kind::kMapping); }
bool IsEscaped(const Value&) { return false; }
// Python calls undefined values so too, since they have all the methods and refuse only their use.
bool IsCallable(const Value& value) {
  return value.Is(Kind::kCallable) || value.Is(Kind::kUndefined) || value.Is(Kind::kLoop);
}
bool IsSequence(const Value& value) {
  if (value.Is(Kind::kSequence)) return value.AsSequence().HasIndex();
  return value.Is(Kind::kString) || value.Is(Kind::kMapping) || value.Is(Kind::kUndefined);
}

absl::StatusOr<Value> Argument(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("the test", arguments, {"other"}, 1));
  return bound[0];
}

Result DivisibleBy(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value divisor, Argument(arguments));
  ASSIGN_OR_RETURN(const Value rest, Apply(runtime, Arithmetic::kModulo, value, divisor));
  return Equal(runtime, rest, Value::Integer(0));
}

template <int64_t kRest>
Result Parity(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the test takes no arguments");
  ASSIGN_OR_RETURN(const Value rest, Apply(runtime, Arithmetic::kModulo, value, Value::Integer(2)));
  return Equal(runtime, rest, Value::Integer(kRest));
}

Result IsIn(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value container, Argument(arguments));
  return Contains(runtime, container, value);
}

template <bool kWanted>
Result IsEqual(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value other, Argument(arguments));
  return Equal(runtime, value, other) == kWanted;
}

template <bool (*kIs)(std::partial_ordering)>
Result Compare(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value other, Argument(arguments));
  ASSIGN_OR_RETURN(const std::partial_ordering order, Order(runtime, value, other));
  return kIs(order);
}

bool IsLess(std::partial_ordering order) { return std::is_lt(order); }
bool IsLessOrEqual(std::partial_ordering order) { return std::is_lteq(order); }
bool IsGreater(std::partial_ordering order) { return std::is_gt(order); }
bool IsGreaterOrEqual(std::partial_ordering order) { return std::is_gteq(order); }

Result SameAs(Runtime& runtime, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Value other, Argument(arguments));
  if (value.kind() != other.kind()) return false;
  if (value.address() != nullptr) return value.address() == other.address();
  return Equal(runtime, value, other);
}

template <bool kUpper>
Result HasCase(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the test takes no arguments");
  const std::string text = ToText(runtime, value);
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  bool some = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    const bool right = kUpper ? IsUpper(c) : IsLower(c);
    if (!right && IsCased(c)) return false;
    some = some || right;
  }
  return some;
}

Result NamesFilter(Runtime&, const Value& value, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the test takes no arguments");
  return value.Is(Kind::kString) && FindFilter(value.AsString()) != nullptr;
}

Result NamesTest(Runtime&, const Value& value, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the test takes no arguments");
  return value.Is(Kind::kString) && FindTest(value.AsString()) != nullptr;
}

struct TestRow {
  std::string_view name;
  TestFunction function;
};

constexpr TestRow kTests[] = {
    {"!=", IsEqual<false>},
    {"<", Compare<IsLess>},
    {"<=", Compare<IsLessOrEqual>},
    {"==", IsEqual<true>},
    {">", Compare<IsGreater>},
    {">=", Compare<IsGreaterOrEqual>},
    {"boolean", Plain<IsBoolean>},
    {"callable", Plain<IsCallable>},
    {"defined", Plain<IsDefined>},
    {"divisibleby", DivisibleBy},
    {"eq", IsEqual<true>},
    {"equalto", IsEqual<true>},
    {"escaped", Plain<IsEscaped>},
    {"even", Parity<0>},
    {"false", Plain<IsFalse>},
    {"filter", NamesFilter},
    {"float", Plain<IsFloat>},
    {"ge", Compare<IsGreaterOrEqual>},
    {"greaterthan", Compare<IsGreater>},
    {"gt", Compare<IsGreater>},
    {"in", IsIn},
    {"integer", Plain<IsInteger>},
    {"iterable", Plain<IsIterable>},
    {"le", Compare<IsLessOrEqual>},
    {"lessthan", Compare<IsLess>},
    {"lower", HasCase<false>},
    {"lt", Compare<IsLess>},
    {"mapping", Plain<IsMapping>},
    {"ne", IsEqual<false>},
    {"none", Plain<IsNone>},
    {"number", Plain<IsNumber>},
    {"odd", Parity<1>},
    {"sameas", SameAs},
    {"sequence", Plain<IsSequence>},
    {"string", Plain<IsString>},
    {"test", NamesTest},
    {"true", Plain<IsTrue>},
    {"undefined", Plain<IsUndefined>},
    {"upper", HasCase<true>},
};

}  // namespace

TestFunction FindTest(std::string_view name) {
  for (const TestRow& row : kTests) {
    if (row.name == name) return row.function;
  }
  return nullptr;
}

absl::StatusOr<bool> ApplyTest(Runtime& runtime, std::string_view name, const Value& value,
                               const Arguments& arguments) {
  const TestFunction test = FindTest(name);
  if (test == nullptr) return Error(absl::StrCat("there is no test '", EscapedText(name, 64), "'"));
  return test(runtime, value, arguments);
}

}  // namespace weft::jinja
