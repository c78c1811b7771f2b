#include "coordinator/chat/jinja/global_functions.h"

#include <ctime>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Bounds of range() lie within this, so that no arithmetic on them overflows.
constexpr int64_t kMaxBound = int64_t{1} << 31;

Result RangeFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  const size_t count = arguments.positional.size();
  if (count < 1 || count > 3 || !arguments.keywords.empty()) {
    return Error("range() wants one to three integers");
  }
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < count; ++i) {
    const Value& value = arguments.positional[i];
    if (!value.IsIntegral()) return MisuseError("range() cannot take", value);
    const int64_t number = value.AsInteger();
    if (number > kMaxBound || number < -kMaxBound) return Error("range() got too large a number");
    numbers[count == 1 ? 1 : i] = number;
  }
  const auto [start, stop, step] = numbers;
  if (step == 0) return Error("range() cannot step by 0");
  const int64_t distance = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t length = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (length > runtime.limits().range_length) {
    return runtime.Exhaust("elements of a range", runtime.limits().range_length);
  }
  if (!runtime.HasRoom(length * static_cast<int64_t>(sizeof(Value)))) return runtime.status();
  return runtime.Range(start, stop, step, length);
}

// The entries of dict(...) and namespace(...): of a dict or pairs, and of the named arguments.
absl::StatusOr<std::vector<std::pair<Value, Value>>> Entries(Runtime& runtime,
                                                             const Arguments& arguments) {
  if (arguments.positional.size() > 1) return Error("a dict is made of one argument at most");
  std::vector<std::pair<Value, Value>> entries;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.Is(Kind::kMapping)) {
      entries = source.AsMapping().entries;
    } else {
      ASSIGN_OR_RETURN(const std::vector<Value> pairs, Elements(runtime, source));
      for (const Value& pair : pairs) {
        ASSIGN_OR_RETURN(const std::vector<Value> parts, Elements(runtime, pair));
        if (parts.size() != 2) return Error("a dict is made of pairs");
        RETURN_IF_ERROR(CheckKey(runtime, parts[0]));
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keywords) {
    entries.emplace_back(runtime.String(name), value);
  }
  return entries;
}

Result DictFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  ASSIGN_OR_RETURN(auto entries, Entries(runtime, arguments));
  return runtime.Dict(std::move(entries));
}

Result NamespaceFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  ASSIGN_OR_RETURN(auto entries, Entries(runtime, arguments));
  Namespace* space = runtime.NewNamespace();
  for (auto& [key, value] : entries) {
    if (!key.Is(Kind::kString)) return MisuseError("the name of an attribute cannot be", key);
    // Set() looks through all attributes.
    if (!runtime.Charge(static_cast<int64_t>(space->attributes.size()))) return runtime.status();
    runtime.Take(static_cast<int64_t>(key.AsString().size() + sizeof(Value)));
    space->Set(key.AsString(), std::move(value));
  }
  return Value(Value::Data(space));
}

Result RaiseException(Runtime& runtime, const Value&, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("raise_exception", arguments, {"message"}, 1));
  return Error(absl::StrCat("the template refuses: ", ToText(runtime, bound[0])));
}

// One conversion of strftime, or nothing where the C library may not be asked: time zones, and
// what is no conversion.
std::optional<std::string> FormatTime(const std::tm& time, std::string_view conversion) {
  constexpr std::string_view kKnown = "aAbBcdDeFHIjklmMnprRStTuUVwWxXyYCgGhP%";
  const char letter = conversion.back();
  if (letter == 'Z' || letter == 'z') return "";
  if (letter == 'f') return "000000";
  if (kKnown.find(letter) == std::string_view::npos) return std::nullopt;
  char buffer[128];
  const size_t size = std::strftime(buffer, sizeof(buffer), std::string(conversion).c_str(), &time);
  return std::string(buffer, size);
}

// datetime.now().strftime(format) at the time of the caller.
Result StrftimeNow(Runtime& runtime, const Value&, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("strftime_now", arguments, {"format"}, 1));
  ASSIGN_OR_RETURN(const std::string format, bound.Text(0, ""));
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    size_t end = i + 1;
    while (end < format.size() &&
           (format[end] == '-' || format[end] == '_' || format[end] == '^' || format[end] == '#')) {
      ++end;
    }
    if (end == format.size() || end - i > 4) return Error("strftime_now() got a bad format");
    const auto text = FormatTime(runtime.now(), std::string_view(format).substr(i, end - i + 1));
    if (!text.has_value()) return Error("strftime_now() got a conversion that is unknown here");
    out += *text;
    i = end;
    if (!runtime.Charge(1) || !runtime.HasRoom(static_cast<int64_t>(out.size()))) {
      return runtime.status();
    }
  }
  if (!IsUtf8(out)) return Error("strftime_now() made a text that is not UTF-8");
  return runtime.String(std::move(out));
}

// Empty at its first call, the separator at all others.
Result CallJoiner(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("a joiner takes no arguments");
  Namespace& state = self.AsNamespace();
  if (Truth(*state.Find("used"))) return *state.Find("separator");
  state.Set("used", Value::Bool(true));
  return runtime.String("");
}

Result JoinerFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("joiner", arguments, {"sep"}));
  Namespace* state = runtime.NewNamespace();
  state->Set("used", Value::Bool(false));
  state->Set("separator", bound.Given(0) ? bound[0] : runtime.String(", "));
  return runtime.Function("joiner", CallJoiner, Value(Value::Data(state)));
}

Result CyclerNext(Runtime&, const Value& self, const Arguments&) {
  Namespace& state = self.AsNamespace();
  const auto& items = state.Find("items")->AsSequence().items;
  const auto position = static_cast<size_t>(state.Find("position")->AsInteger());
  const size_t next = (position + 1) % items.size();
  state.Set("position", Value::Integer(static_cast<int64_t>(next)));
  return items[position];
}

Result CyclerReset(Runtime&, const Value& self, const Arguments&) {
  Namespace& state = self.AsNamespace();
  state.Set("position", Value::Integer(0));
  return Value::None();
}

Result CyclerFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.keywords.empty()) {
    return Error("cycler() wants at least one value");
  }
  // A second namespace holds the state, where a template cannot set it.
  const Value state(Value::Data(runtime.NewNamespace()));
  const Value items = runtime.Tuple(arguments.positional);
  if (runtime.exhausted()) return runtime.status();
  state.AsNamespace().Set("items", items);
  RETURN_IF_ERROR(CyclerReset(runtime, state, {}).status());
  Namespace* cycler = runtime.NewNamespace();
  cycler->Set("next", runtime.Function("next", CyclerNext, state));
  cycler->Set("reset", runtime.Function("reset", CyclerReset, state));
  return Value(Value::Data(cycler));
}

}  // namespace

std::optional<Value> GlobalFunction(Runtime& runtime, std::string_view name) {
  constexpr std::pair<std::string_view, NativeFunction> kFunctions[] = {
      {"cycler", CyclerFunction},          {"dict", DictFunction},
      {"joiner", JoinerFunction},          {"namespace", NamespaceFunction},
      {"raise_exception", RaiseException}, {"range", RangeFunction},
      {"strftime_now", StrftimeNow},
  };
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return runtime.Function(known, function);
  }
  return std::nullopt;
}

}  // namespace weft::jinja
