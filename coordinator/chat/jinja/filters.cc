#include "coordinator/chat/jinja/filters.h"

#include "absl/strings/str_cat.h"
#include "common/base/escaped_text.h"
#include "coordinator/chat/jinja/operations.h"

namespace weft::jinja {

NativeFunction FindFilter(std::string_view name) {
  for (const auto rows : {TextFilters(), SequenceFilters(), SelectionFilters(), NumberFilters()}) {
    for (const FilterRow& row : rows) {
      if (row.name == name) return row.function;
    }
  }
  return nullptr;
}

absl::StatusOr<Value> ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                                  const Arguments& arguments) {
  const NativeFunction filter = FindFilter(name);
  if (filter == nullptr) {
    return Error(absl::StrCat("there is no filter '", EscapedText(name, 64), "'"));
  }
  return filter(runtime, value, arguments);
}

}  // namespace weft::jinja
