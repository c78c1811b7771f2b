// FillMessage: values by reflection, so that a new message or field is in every test at once.
#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "google/protobuf/descriptor.h"
#include "rpc_backend/protocol/message_rules.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Filler {
 public:
  void Fill(Message& message) {
    const auto& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const auto* oneof = field.real_containing_oneof();
      if (oneof != nullptr && oneof->field(0) != &field) continue;
      if (field.is_repeated()) {
        const ListRule* rule = FindListRule(type.name(), field.name());
        const int64_t most = rule == nullptr ? 2 : rule->most.Of(WireLimits());
        for (int64_t n = 0; n < std::min<int64_t>(most, 2); ++n) Add(message, field);
      } else {
        Set(message, field);
      }
    }
  }

 private:
  // The next number, within the field's bounds.
  int64_t Number(const FieldDescriptor& field) {
    const int64_t number = next_++;
    const ValueRule* rule = FindValueRule(field.containing_type()->name(), field.name());
    if (rule == nullptr) return number;
    return std::clamp(number, rule->least.Of(WireLimits()), rule->most.Of(WireLimits()));
  }

  std::string Bytes(const FieldDescriptor& field) {
    const ValueRule* rule = FindValueRule(field.containing_type()->name(), field.name());
    std::string text = "text " + std::to_string(next_++);
    if (rule == nullptr) return text;
    const auto size = static_cast<int64_t>(text.size());
    text.resize(static_cast<size_t>(
                    std::clamp(size, rule->least.Of(WireLimits()), rule->most.Of(WireLimits()))),
                '.');
    return text;
  }

  void Set(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(*reflection.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.SetString(&message, &field, Bytes(field));
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(&message, &field, static_cast<int32_t>(Number(field)));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(&message, &field, Number(field));
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetUInt32(&message, &field, static_cast<uint32_t>(Number(field)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(&message, &field, 0.5 * static_cast<double>(next_++));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(&message, &field, 0.5f * static_cast<float>(next_++));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(
            &message, &field,
            field.enum_type()->value(field.enum_type()->value_count() - 1)->number());
      default:
        WEFT_CHECK(false);  // a field of a type that no message has so far
    }
  }

  void Add(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(*reflection.AddMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.AddString(&message, &field, Bytes(field));
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.AddInt32(&message, &field, static_cast<int32_t>(Number(field)));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.AddInt64(&message, &field, Number(field));
      default:
        WEFT_CHECK(false);
    }
  }

  int64_t next_ = 1;
};

}  // namespace

void FillMessage(Message& message) { Filler().Fill(message); }

}  // namespace weft
