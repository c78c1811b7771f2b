// What stands behind `|`.
#pragma once

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

struct FilterRow {
  std::string_view name;
  NativeFunction function;  // self is what stands before the '|'
};

// The filter of that name, or null.
NativeFunction FindFilter(std::string_view name);

// Error: no filter has that name.
absl::StatusOr<Value> ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                                  const Arguments& arguments);

// By what they work on; FindFilter looks through all.
std::span<const FilterRow> TextFilters();
std::span<const FilterRow> SequenceFilters();
std::span<const FilterRow> SelectionFilters();
std::span<const FilterRow> NumberFilters();

}  // namespace weft::jinja
