#include "coordinator/chat/jinja/attributes.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"

namespace weft::jinja {
namespace {

constexpr size_t kShownBytes = 64;

std::optional<Value> MethodOf(Runtime& runtime, const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kString:
      return StringMethod(runtime, object, name);
    case Kind::kSequence:
    case Kind::kMapping:
      return ContainerMethod(runtime, object, name);
    case Kind::kLoop:
      return LoopAttribute(runtime, object, name);
    case Kind::kNamespace: {
      const Value* value = object.AsNamespace().Find(name);
      if (value == nullptr) return std::nullopt;
      return *value;
    }
    default:
      return std::nullopt;
  }
}

Value NoAttribute(const Value& object, std::string_view name) {
  return Value::Missing(absl::StrCat("'", AbslView(object.TypeName()), "' has no '",
                                     EscapedText(name, kShownBytes), "'"));
}

}  // namespace

absl::StatusOr<Value> AttributeOf(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.Is(Kind::kUndefined)) {
    return MisuseError(absl::StrCat("cannot take '", EscapedText(name, kShownBytes), "' of"),
                       object);
  }
  if (std::optional<Value> method = MethodOf(runtime, object, name)) return *std::move(method);
  if (object.Is(Kind::kMapping)) {
    if (const Value* value = object.AsMapping().Find(name)) return *value;
  }
  return NoAttribute(object, name);
}

absl::StatusOr<Value> SubscriptOf(Runtime& runtime, const Value& object, const Value& index) {
  if (object.Is(Kind::kUndefined)) return MisuseError("cannot take an element of", object);
  if (std::optional<Value> item = ItemAt(runtime, object, index)) return *std::move(item);
  if (index.Is(Kind::kString)) {
    if (std::optional<Value> method = MethodOf(runtime, object, index.AsString())) {
      return *std::move(method);
    }
    return NoAttribute(object, index.AsString());
  }
  return NoAttribute(object, ToText(runtime, index));
}

}  // namespace weft::jinja
