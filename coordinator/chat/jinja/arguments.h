// What a call passes, and how it meets a function's parameters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  bool empty() const { return positional.empty() && keywords.empty(); }
};

// Arguments in the order of a function's parameters.
class BoundArguments {
 public:
  // Errors: more arguments than parameters, an unknown name, one given twice, fewer than
  // `required`.
  static absl::StatusOr<BoundArguments> Bind(std::string_view function, const Arguments& arguments,
                                             std::initializer_list<std::string_view> parameters,
                                             size_t required = 0);

  // Whether it was given, None included.
  bool Given(size_t i) const { return given_[i]; }
  // Undefined if it was not given.
  const Value& operator[](size_t i) const { return values_[i]; }

  bool Flag(size_t i, bool if_absent) const;
  // Errors: another type.
  absl::StatusOr<int64_t> Integer(size_t i, int64_t if_absent) const;
  absl::StatusOr<std::string> Text(size_t i, std::string_view if_absent) const;

 private:
  std::string function_;
  std::vector<Value> values_;
  std::vector<bool> given_;
};

}  // namespace weft::jinja
