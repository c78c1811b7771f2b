#include "coordinator/chat/jinja/operations.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

// Exact, where converting the integer might round.
std::partial_ordering OrderIntegerAndFloat(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwoTo63) return std::partial_ordering::less;
  if (b < -kTwoTo63) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto order = a <=> static_cast<int64_t>(whole);
  if (order != std::strong_ordering::equal) return order;
  return 0.0 <=> b - whole;
}

std::partial_ordering OrderNumbers(const Value& a, const Value& b) {
  if (a.IsIntegral() && b.IsIntegral()) return a.AsInteger() <=> b.AsInteger();
  if (a.IsIntegral()) return OrderIntegerAndFloat(a.AsInteger(), b.AsDouble());
  if (b.IsIntegral()) {
    const std::partial_ordering reversed = OrderIntegerAndFloat(b.AsInteger(), a.AsDouble());
    if (std::is_lt(reversed)) return std::partial_ordering::greater;
    return std::is_gt(reversed) ? std::partial_ordering::less : reversed;
  }
  return a.AsDouble() <=> b.AsDouble();
}

bool EqualSequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  if (a.form != b.form || !a.HasIndex() || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool EqualMappings(Runtime& runtime, const Mapping& a, const Mapping& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = FindKey(runtime, b, key);
    if (other == nullptr || !Equal(runtime, value, *other)) return false;
  }
  return true;
}

absl::Status OrderError(const Value& a, const Value& b) {
  if (a.Is(Kind::kUndefined)) return MisuseError("cannot compare", a);
  if (b.Is(Kind::kUndefined)) return MisuseError("cannot compare", b);
  return Error(absl::StrCat("cannot tell which is less, '", AbslView(a.TypeName()), "' or '",
                            AbslView(b.TypeName()), "'"));
}

absl::StatusOr<std::partial_ordering> OrderSequences(Runtime& runtime, const Sequence& a,
                                                     const Sequence& b) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!Equal(runtime, a.items[i], b.items[i])) return Order(runtime, a.items[i], b.items[i]);
  }
  return a.items.size() <=> b.items.size();
}

}  // namespace

absl::Status Error(std::string_view words) { return absl::InvalidArgumentError(AbslView(words)); }

absl::Status MisuseError(std::string_view use, const Value& value) {
  if (!value.Is(Kind::kUndefined)) {
    return Error(absl::StrCat(AbslView(use), " '", AbslView(value.TypeName()), "'"));
  }
  const auto& reason = value.AsUndefined().reason;
  return Error(absl::StrCat(AbslView(use), " what is undefined", reason ? ": " : "",
                            reason ? *reason : std::string()));
}

bool Truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return value.AsInteger() != 0;
    case Kind::kFloat:
      return value.AsDouble() != 0;
    case Kind::kString:
      return !value.AsString().empty();
    case Kind::kSequence:
      return !value.AsSequence().HasLength() || !value.AsSequence().items.empty();
    case Kind::kMapping:
      return !value.AsMapping().entries.empty();
    case Kind::kLoop:
      return value.AsLoop().length != 0;
    default:
      return true;
  }
}

bool Equal(Runtime& runtime, const Value& a, const Value& b) {
  if (!runtime.Charge(1)) return false;
  if (a.IsNumber() && b.IsNumber()) return OrderNumbers(a, b) == std::partial_ordering::equivalent;
  if (a.kind() != b.kind()) return false;
  if (a.address() != nullptr && a.address() == b.address()) return true;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      runtime.ChargeBytes(a.AsString().size());
      return a.AsString() == b.AsString();
    case Kind::kSequence:
      return EqualSequences(runtime, a.AsSequence(), b.AsSequence());
    case Kind::kMapping:
      return EqualMappings(runtime, a.AsMapping(), b.AsMapping());
    default:
      return false;
  }
}

absl::StatusOr<std::partial_ordering> Order(Runtime& runtime, const Value& a, const Value& b) {
  if (!runtime.Charge(1)) return runtime.status();
  if (a.IsNumber() && b.IsNumber()) return OrderNumbers(a, b);
  if (a.Is(Kind::kString) && b.Is(Kind::kString)) {
    runtime.ChargeBytes(a.AsString().size());
    return a.AsString().compare(b.AsString()) <=> 0;
  }
  if (a.Is(Kind::kSequence) && b.Is(Kind::kSequence)) {
    const Sequence& left = a.AsSequence();
    const Sequence& right = b.AsSequence();
    if (left.form == right.form && left.HasIndex() && left.form != Sequence::Form::kRange) {
      return OrderSequences(runtime, left, right);
    }
  }
  return OrderError(a, b);
}

absl::Status CheckKey(Runtime& runtime, const Value& value) {
  if (!runtime.Charge(1)) return runtime.status();
  if (value.Is(Kind::kMapping)) return MisuseError("a key cannot be a", value);
  if (!value.Is(Kind::kSequence)) return absl::OkStatus();
  if (value.AsSequence().form == Sequence::Form::kList) {
    return MisuseError("a key cannot be a", value);
  }
  if (value.AsSequence().form == Sequence::Form::kTuple) {
    for (const Value& item : value.AsSequence().items) RETURN_IF_ERROR(CheckKey(runtime, item));
  }
  return absl::OkStatus();
}

const Value* FindKey(Runtime& runtime, const Mapping& mapping, const Value& key) {
  if (key.Is(Kind::kString)) return mapping.Find(key.AsString());
  for (const auto& [other, value] : mapping.entries) {
    if (Equal(runtime, other, key)) return &value;
  }
  return nullptr;
}

absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.Is(Kind::kString)) {
    if (!item.Is(Kind::kString)) return MisuseError("cannot look in a text for", item);
    runtime.ChargeBytes(container.AsString().size());
    return container.AsString().find(item.AsString()) != std::string::npos;
  }
  if (container.Is(Kind::kMapping)) {
    RETURN_IF_ERROR(CheckKey(runtime, item));
    return FindKey(runtime, container.AsMapping(), item) != nullptr;
  }
  ASSIGN_OR_RETURN(const std::vector<Value> elements, Elements(runtime, container));
  for (const Value& element : elements) {
    if (Equal(runtime, element, item)) return true;
  }
  return false;
}

bool IsIterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kSequence:
    case Kind::kMapping:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<std::vector<Value>> Elements(Runtime& runtime, const Value& value) {
  std::vector<Value> elements;
  if (value.Is(Kind::kString)) {
    const std::string& text = value.AsString();
    if (!runtime.HasRoom(value.AsText().code_points * 128)) return runtime.status();
    for (size_t i = 0; i < text.size();) {
      const size_t start = i;
      NextCodePoint(text, &i);
      elements.push_back(runtime.String(text.substr(start, i - start)));
    }
    return elements;
  }
  if (value.Is(Kind::kMapping)) {
    for (const auto& entry : value.AsMapping().entries) elements.push_back(entry.first);
  } else if (value.Is(Kind::kSequence)) {
    const Sequence& sequence = value.AsSequence();
    if (!sequence.walked) elements = sequence.items;
    sequence.walked = sequence.form == Sequence::Form::kIterator;
  } else if (!value.Is(Kind::kUndefined)) {
    return MisuseError("cannot iterate over", value);
  }
  if (!runtime.Charge(static_cast<int64_t>(elements.size()))) return runtime.status();
  return elements;
}

absl::StatusOr<int64_t> Length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.AsText().code_points;
    case Kind::kMapping:
      return static_cast<int64_t>(value.AsMapping().entries.size());
    case Kind::kLoop:
      return value.AsLoop().length;
    case Kind::kSequence:
      if (value.AsSequence().HasLength()) {
        return static_cast<int64_t>(value.AsSequence().items.size());
      }
      [[fallthrough]];
    default:
      return MisuseError("no length has", value);
  }
}

}  // namespace weft::jinja
