// Filters on lists and dicts as wholes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attribute_path.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/sort.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

absl::Status NoArguments(const Arguments& arguments) {
  return arguments.empty() ? absl::OkStatus() : Error("the filter takes no arguments");
}

Result First(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  return items.empty() ? Value::Missing("the first of nothing") : items.front();
}

Result Last(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  if (self.Is(Kind::kSequence) && !self.AsSequence().HasLength()) {
    return Error("last wants a list, not an iterator");
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  return items.empty() ? Value::Missing("the last of nothing") : items.back();
}

Result LengthFilter(Runtime&, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  ASSIGN_OR_RETURN(const int64_t length, Length(self));
  return Value::Integer(length);
}

Result ToList(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  ASSIGN_OR_RETURN(std::vector<Value> items, Elements(runtime, self));
  return runtime.List(std::move(items));
}

Result Reverse(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  if (self.Is(Kind::kString)) {
    return SliceOf(runtime, self, {Value::None(), Value::None(), Value::Integer(-1)});
  }
  ASSIGN_OR_RETURN(std::vector<Value> items, Elements(runtime, self));
  std::reverse(items.begin(), items.end());
  const bool from_iterator = self.Is(Kind::kSequence) && !self.AsSequence().HasLength();
  return from_iterator ? runtime.List(std::move(items)) : runtime.Iterator(std::move(items));
}

Result Items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  RETURN_IF_ERROR(NoArguments(arguments));
  std::vector<Value> items;
  if (self.Is(Kind::kMapping)) {
    for (const auto& [key, value] : self.AsMapping().entries) {
      items.push_back(runtime.Tuple({key, value}));
    }
  } else if (!self.Is(Kind::kUndefined)) {
    return MisuseError("items wants a dict, not", self);
  }
  return runtime.Iterator(std::move(items));
}

Result Sort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(
      const auto bound,
      BoundArguments::Bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> keys;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, SortKey(runtime, item, bound[2], bound.Flag(1, false)));
    keys.push_back(std::move(key));
  }
  ASSIGN_OR_RETURN(const auto order, SortedOrder(runtime, keys, bound.Flag(0, false)));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return runtime.List(std::move(sorted));
}

Result DictSort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("dictsort", arguments,
                                                          {"case_sensitive", "by", "reverse"}));
  ASSIGN_OR_RETURN(const std::string by, bound.Text(1, "key"));
  if (by != "key" && by != "value") return Error("dictsort sorts by 'key' or 'value'");
  if (!self.Is(Kind::kMapping)) return MisuseError("dictsort wants a dict, not", self);
  const auto& entries = self.AsMapping().entries;
  std::vector<Value> keys;
  keys.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    keys.push_back(FoldCase(runtime, by == "key" ? key : value, bound.Flag(0, false)));
  }
  ASSIGN_OR_RETURN(const auto order, SortedOrder(runtime, keys, bound.Flag(2, false)));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t i : order) {
    sorted.push_back(runtime.Tuple({entries[i].first, entries[i].second}));
  }
  return runtime.List(std::move(sorted));
}

Result Unique(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("unique", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> seen;
  std::vector<Value> unique;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, AttributeAt(runtime, item, bound[1]));
    key = FoldCase(runtime, key, bound.Flag(0, false));
    RETURN_IF_ERROR(CheckKey(runtime, key));
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const Value& other) { return Equal(runtime, other, key); });
    if (runtime.exhausted()) return runtime.status();
    if (known) continue;
    seen.push_back(std::move(key));
    unique.push_back(item);
  }
  return runtime.Iterator(std::move(unique));
}

template <bool kWantGreater>
Result Extreme(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("min", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  if (items.empty()) return Value::Missing("the least or greatest of nothing");
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(Value key, AttributeAt(runtime, items[i], bound[1]));
    key = FoldCase(runtime, key, bound.Flag(0, false));
    if (i > 0) {
      ASSIGN_OR_RETURN(const std::partial_ordering order, Order(runtime, key, best_key));
      if (kWantGreater ? !std::is_gt(order) : !std::is_lt(order)) continue;
    }
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Result Sum(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("sum", arguments, {"attribute", "start"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  Value sum = bound.Given(1) ? bound[1] : Value::Integer(0);
  if (sum.Is(Kind::kString)) return Error("sum cannot add texts; use join");
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value term, AttributeAt(runtime, item, bound[0]));
    ASSIGN_OR_RETURN(sum, Apply(runtime, Arithmetic::kAdd, sum, term));
    if (runtime.exhausted()) return runtime.status();
  }
  return sum;
}

Result Batch(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("batch", arguments, {"linecount", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t size, bound.Integer(0, 0));
  if (size < 1 || size > runtime.limits().range_length) return Error("no such size of a batch");
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, self));
  std::vector<Value> batches;
  for (size_t start = 0; start < items.size(); start += static_cast<size_t>(size)) {
    const size_t end = std::min(items.size(), start + static_cast<size_t>(size));
    std::vector<Value> batch(items.begin() + static_cast<int64_t>(start),
                             items.begin() + static_cast<int64_t>(end));
    if (bound.Given(1) && !bound[1].Is(Kind::kNone)) {
      batch.resize(static_cast<size_t>(size), bound[1]);
    }
    batches.push_back(runtime.List(std::move(batch)));
  }
  return runtime.Iterator(std::move(batches));
}

constexpr FilterRow kFilters[] = {
    {"batch", Batch},       {"count", LengthFilter}, {"dictsort", DictSort},   {"first", First},
    {"items", Items},       {"last", Last},          {"length", LengthFilter}, {"list", ToList},
    {"max", Extreme<true>}, {"min", Extreme<false>}, {"reverse", Reverse},     {"sort", Sort},
    {"sum", Sum},           {"unique", Unique},
};

}  // namespace

std::span<const FilterRow> SequenceFilters() { return kFilters; }

}  // namespace weft::jinja
