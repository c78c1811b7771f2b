#include "coordinator/chat/jinja/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/jinja/operations.h"

namespace weft::jinja {

absl::StatusOr<BoundArguments> BoundArguments::Bind(
    std::string_view function, const Arguments& arguments,
    std::initializer_list<std::string_view> parameters, size_t required) {
  BoundArguments bound;
  bound.function_ = function;
  bound.values_.resize(parameters.size());
  bound.given_.resize(parameters.size());
  if (arguments.positional.size() > parameters.size()) {
    return Error(absl::StrCat(AbslView(function), "() takes at most ", parameters.size(),
                              " arguments, not ", arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = arguments.positional[i];
    bound.given_[i] = true;
  }
  for (const auto& [name, value] : arguments.keywords) {
    const auto* found = std::find(parameters.begin(), parameters.end(), name);
    const auto i = static_cast<size_t>(found - parameters.begin());
    if (found == parameters.end() || bound.given_[i]) {
      return Error(absl::StrCat(AbslView(function), "() ",
                                found == parameters.end() ? "has no argument '" : "got twice '",
                                name, "'"));
    }
    bound.values_[i] = value;
    bound.given_[i] = true;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound.given_[i]) continue;
    return Error(absl::StrCat(AbslView(function), "() lacks the argument '",
                              AbslView(parameters.begin()[i]), "'"));
  }
  return bound;
}

bool BoundArguments::Flag(size_t i, bool if_absent) const {
  return given_[i] ? Truth(values_[i]) : if_absent;
}

absl::StatusOr<int64_t> BoundArguments::Integer(size_t i, int64_t if_absent) const {
  if (!given_[i]) return if_absent;
  if (values_[i].IsIntegral()) return values_[i].AsInteger();
  return MisuseError(absl::StrCat(function_, "() wants an integer, not"), values_[i]);
}

absl::StatusOr<std::string> BoundArguments::Text(size_t i, std::string_view if_absent) const {
  if (!given_[i]) return std::string(if_absent);
  if (values_[i].Is(Kind::kString)) return values_[i].AsString();
  return MisuseError(absl::StrCat(function_, "() wants a text, not"), values_[i]);
}

}  // namespace weft::jinja
