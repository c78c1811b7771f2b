// Filters that go through a list with another filter or a test. Python's are lazy; these are not,
// which shows only where an element that is never asked for would be an error.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attribute_path.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/tests.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// The arguments behind the first `count`.
Arguments Rest(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<int64_t>(count));
  return rest;
}

Result MapAttribute(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("map", arguments, {"attribute", "default"}, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> mapped;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value value, AttributeAt(runtime, item, bound[0]));
    if (value.Is(Kind::kUndefined) && bound.Given(1)) value = bound[1];
    mapped.push_back(std::move(value));
  }
  return runtime.Iterator(std::move(mapped));
}

// What is false, None for one, counts as an empty list here, and the arguments do not matter.
Result Map(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!Truth(self)) return runtime.Iterator({});
  if (arguments.positional.empty()) return MapAttribute(runtime, self, arguments);
  if (!arguments.positional[0].Is(Kind::kString)) return Error("map wants the name of a filter");
  const std::string& name = arguments.positional[0].AsString();
  const Arguments rest = Rest(arguments, 1);
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> mapped;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value value, ApplyFilter(runtime, name, item, rest));
    if (runtime.exhausted()) return runtime.status();
    mapped.push_back(std::move(value));
  }
  return runtime.Iterator(std::move(mapped));
}

// Keeps the items for which the test (or without one, the truth) is `kWanted`; with kAttribute it
// looks at the attribute that the first argument names.
template <bool kWanted, bool kAttribute>
Result Select(Runtime& runtime, const Value& self, const Arguments& arguments) {
  constexpr size_t kTestIndex = kAttribute ? 1 : 0;
  if (!Truth(self)) return runtime.Iterator({});
  if (arguments.positional.size() < kTestIndex) return Error("the filter wants an attribute");
  const bool has_test = arguments.positional.size() > kTestIndex;
  if (has_test && !arguments.positional[kTestIndex].Is(Kind::kString)) {
    return Error("the filter wants the name of a test");
  }
  const Arguments rest = has_test ? Rest(arguments, kTestIndex + 1) : Arguments();
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> selected;
  for (const Value& item : items) {
    absl::StatusOr<Value> value = item;
    if constexpr (kAttribute) {
      value = AttributeAt(runtime, item, arguments.positional[0]);
    }
    RETURN_IF_ERROR(value.status());
    bool passes = Truth(*value);
    if (has_test) {
      ASSIGN_OR_RETURN(
          passes, ApplyTest(runtime, arguments.positional[kTestIndex].AsString(), *value, rest));
    }
    if (runtime.exhausted()) return runtime.status();
    if (passes == kWanted) selected.push_back(item);
  }
  return runtime.Iterator(std::move(selected));
}

constexpr FilterRow kFilters[] = {
    {"map", Map},
    {"reject", Select<false, false>},
    {"rejectattr", Select<false, true>},
    {"select", Select<true, false>},
    {"selectattr", Select<true, true>},
};

}  // namespace

std::span<const FilterRow> SelectionFilters() { return kFilters; }

}  // namespace weft::jinja
