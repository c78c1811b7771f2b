// Methods of lists, tuples, dicts and loops.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/attributes.h"
#include "coordinator/chat/jinja/operations.h"

namespace weft::jinja {
namespace {

absl::StatusOr<Value> Count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("count", arguments, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : self.AsSequence().items) count += Equal(runtime, item, bound[0]) ? 1 : 0;
  return Value::Integer(count);
}

absl::StatusOr<Value> Index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("index", arguments, {"value"}, 1));
  const auto& items = self.AsSequence().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(runtime, items[i], bound[0])) return Value::Integer(static_cast<int64_t>(i));
  }
  return Error("index() did not find the value");
}

absl::StatusOr<Value> Copy(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BoundArguments::Bind("copy", arguments, {}).status());
  return self;
}

absl::StatusOr<Value> Get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("get", arguments, {"key", "default"}, 1));
  RETURN_IF_ERROR(CheckKey(runtime, bound[0]));
  if (const Value* value = FindKey(runtime, self.AsMapping(), bound[0])) return *value;
  return bound.Given(1) ? bound[1] : Value::None();
}

absl::StatusOr<Value> Keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BoundArguments::Bind("keys", arguments, {}).status());
  std::vector<Value> keys;
  keys.reserve(self.AsMapping().entries.size());
  for (const auto& entry : self.AsMapping().entries) keys.push_back(entry.first);
  return runtime.Make(Sequence::Form::kKeys, std::move(keys));
}

absl::StatusOr<Value> Values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BoundArguments::Bind("values", arguments, {}).status());
  std::vector<Value> values;
  values.reserve(self.AsMapping().entries.size());
  for (const auto& entry : self.AsMapping().entries) values.push_back(entry.second);
  return runtime.Make(Sequence::Form::kValues, std::move(values));
}

absl::StatusOr<Value> Items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(BoundArguments::Bind("items", arguments, {}).status());
  std::vector<Value> items;
  items.reserve(self.AsMapping().entries.size());
  for (const auto& [key, value] : self.AsMapping().entries) {
    items.push_back(runtime.Tuple({key, value}));
  }
  return runtime.Make(Sequence::Form::kItems, std::move(items));
}

constexpr MethodRow kListMethods[] = {
    {"append", nullptr}, {"clear", nullptr},   {"copy", Copy},      {"count", Count},
    {"extend", nullptr}, {"index", Index},     {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr}, {"reverse", nullptr}, {"sort", nullptr},
};
constexpr MethodRow kTupleMethods[] = {{"count", Count}, {"index", Index}};
constexpr MethodRow kDictMethods[] = {
    {"clear", nullptr},      {"copy", Copy},      {"fromkeys", nullptr}, {"get", Get},
    {"items", Items},        {"keys", Keys},      {"pop", nullptr},      {"popitem", nullptr},
    {"setdefault", nullptr}, {"update", nullptr}, {"values", Values},
};

template <size_t kSize>
std::optional<Value> FindMethod(Runtime& runtime, const MethodRow (&rows)[kSize],
                                const Value& object, std::string_view name) {
  for (const MethodRow& row : rows) {
    if (row.name != name) continue;
    if (row.function != nullptr) return runtime.Function(row.name, row.function, object);
    return Value::Missing(absl::StrCat(AbslView(name),
                                       "() would change a value, which templates "
                                       "may not; make a new one"));
  }
  return std::nullopt;
}

absl::StatusOr<Value> LoopCycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (!arguments.keywords.empty()) return Error("cycle() has no named arguments");
  if (arguments.positional.empty()) return Error("cycle() wants at least one value");
  const auto count = static_cast<int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<size_t>(self.AsLoop().index % count)];
}

absl::StatusOr<Value> LoopChanged(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.keywords.empty()) return Error("changed() has no named arguments");
  LoopState& loop = self.AsLoop();
  const std::vector<Value>& now = arguments.positional;
  bool same = loop.has_changed && loop.changed.size() == now.size();
  for (size_t i = 0; same && i < now.size(); ++i) same = Equal(runtime, loop.changed[i], now[i]);
  if (same) return Value::Bool(false);
  loop.changed = now;
  loop.has_changed = true;
  return Value::Bool(true);
}

Value LoopNeighbour(const LoopState& loop, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(loop.items.size())) {
    return Value::Missing("there is no such item of the loop");
  }
  return loop.items[static_cast<size_t>(index)];
}

}  // namespace

std::optional<Value> ContainerMethod(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.Is(Kind::kMapping)) return FindMethod(runtime, kDictMethods, object, name);
  switch (object.AsSequence().form) {
    case Sequence::Form::kList:
      return FindMethod(runtime, kListMethods, object, name);
    case Sequence::Form::kTuple:
    case Sequence::Form::kRange:
      return FindMethod(runtime, kTupleMethods, object, name);
    default:
      return std::nullopt;
  }
}

std::optional<Value> LoopAttribute(Runtime& runtime, const Value& object, std::string_view name) {
  const LoopState& loop = object.AsLoop();
  if (name == "index") return Value::Integer(loop.index + 1);
  if (name == "index0") return Value::Integer(loop.index);
  if (name == "revindex") return Value::Integer(loop.length - loop.index);
  if (name == "revindex0") return Value::Integer(loop.length - loop.index - 1);
  if (name == "first") return Value::Bool(loop.index == 0);
  if (name == "last") return Value::Bool(loop.index + 1 >= loop.length);
  if (name == "length") return Value::Integer(loop.length);
  if (name == "depth") return Value::Integer(loop.depth + 1);
  if (name == "depth0") return Value::Integer(loop.depth);
  if (name == "previtem") return LoopNeighbour(loop, loop.index - 1);
  if (name == "nextitem") return LoopNeighbour(loop, loop.index + 1);
  if (name == "cycle") return runtime.Function("cycle", LoopCycle, object);
  if (name == "changed") return runtime.Function("changed", LoopChanged, object);
  return std::nullopt;
}

}  // namespace weft::jinja
