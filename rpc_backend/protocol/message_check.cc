#include "rpc_backend/protocol/message_check.h"

#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/message_rules.h"
#include "rpc_backend/protocol/wire_reader.h"

namespace weft {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Bad(const absl::AlphaNum& where, const absl::AlphaNum& why) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
}

// The values of these are checked by codecs of their own.
bool HasCodec(const Descriptor& type) {
  const std::string& file = type.file()->name();
  return file == "proto/graph.proto" || file == "proto/program.proto";
}

// The bounds of one field, for all its values.
class ValueChecker {
 public:
  ValueChecker(const FieldDescriptor& field, const WireLimits& limits)
      : text_(field.type() == FieldDescriptor::TYPE_STRING),
        rule_(FindValueRule(field.containing_type()->name(), field.name())) {
    if (rule_ == nullptr) return;
    least_ = rule_->least.Of(limits);
    most_ = rule_->most.Of(limits);
  }

  absl::Status CheckInt(int64_t value) const {
    if (rule_ == nullptr) return Wrong("has no rule");
    if (value >= least_ && value <= most_) return absl::OkStatus();
    return Wrong(absl::StrCat(value, ", want ", least_, " to ", most_));
  }

  absl::Status CheckBytes(const std::string& value) const {
    if (rule_ == nullptr) return Wrong("has no rule");
    const auto size = static_cast<int64_t>(value.size());
    if (size < least_ || size > most_) {
      return Wrong(least_ == most_ ? absl::StrCat(size, " bytes, want ", most_)
                                   : absl::StrCat(size, " bytes, want ", least_, " to ", most_));
    }
    if (!text_ || IsCleanText(value)) return absl::OkStatus();
    return Wrong(absl::StrCat("'", CleanText(value, 64), "' is not a line of clean text"));
  }

  static absl::Status CheckReal(double value) {
    if (std::isfinite(value) && value >= 0) return absl::OkStatus();
    return Wrong(absl::StrCat(value, ", want a finite number that is not negative"));
  }

  static absl::Status CheckEnum(const FieldDescriptor& field, int value) {
    if (field.enum_type()->FindValueByNumber(value) != nullptr) return absl::OkStatus();
    return Wrong(absl::StrCat("no such ", field.enum_type()->name(), ": ", value));
  }

  // Errors start with a colon; what they are about is put before it on the way out.
  static absl::Status Wrong(const absl::AlphaNum& why) { return Bad("", why); }

 private:
  bool text_;
  const ValueRule* rule_;
  int64_t least_ = 0;
  int64_t most_ = 0;
};

absl::Status At(const absl::AlphaNum& where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(where, status.message()));
}

// Checks a message and those in it. Recursion ends because no message contains itself.
class MessageChecker {
 public:
  explicit MessageChecker(const WireLimits& limits) : limits_(limits) {}

  absl::Status Check(const Message& message) const {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const absl::Status status =
          field.is_repeated() ? CheckList(message, field) : CheckSingle(message, field);
      if (!status.ok()) return At(absl::StrCat(".", field.name()), status);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckList(const Message& message, const FieldDescriptor& field) const {
    const int count = message.GetReflection()->FieldSize(message, &field);
    const ListRule* rule = FindListRule(field.containing_type()->name(), field.name());
    if (rule == nullptr) return ValueChecker::Wrong("has no rule");
    const int64_t most = rule->most.Of(limits_);
    if (count > most) {
      return ValueChecker::Wrong(absl::StrCat(count, " entries, at most ", most, " are allowed"));
    }
    const bool codec = field.message_type() != nullptr && HasCodec(*field.message_type());
    if (codec) return absl::OkStatus();
    const ValueChecker checker(field, limits_);
    for (int i = 0; i < count; ++i) {
      const absl::Status status = CheckElement(message, field, i, checker);
      if (!status.ok()) return At(absl::StrCat("[", i, "]"), status);
    }
    return absl::OkStatus();
  }

  absl::Status CheckElement(const Message& message, const FieldDescriptor& field, int i,
                            const ValueChecker& checker) const {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Check(reflection.GetRepeatedMessage(message, &field, i));
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        return checker.CheckBytes(
            reflection.GetRepeatedStringReference(message, &field, i, &scratch));
      }
      case FieldDescriptor::CPPTYPE_INT32:
        return checker.CheckInt(reflection.GetRepeatedInt32(message, &field, i));
      case FieldDescriptor::CPPTYPE_INT64:
        return checker.CheckInt(reflection.GetRepeatedInt64(message, &field, i));
      default:
        return ValueChecker::Wrong("has no rule for lists of this type");
    }
  }

  absl::Status CheckSingle(const Message& message, const FieldDescriptor& field) const {
    const Reflection& reflection = *message.GetReflection();
    const ValueChecker checker(field, limits_);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (!reflection.HasField(message, &field) || HasCodec(*field.message_type())) {
          return absl::OkStatus();
        }
        return Check(reflection.GetMessage(message, &field));
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        return checker.CheckBytes(reflection.GetStringReference(message, &field, &scratch));
      }
      case FieldDescriptor::CPPTYPE_INT32:
        return checker.CheckInt(reflection.GetInt32(message, &field));
      case FieldDescriptor::CPPTYPE_INT64:
        return checker.CheckInt(reflection.GetInt64(message, &field));
      case FieldDescriptor::CPPTYPE_UINT32:
        return checker.CheckInt(reflection.GetUInt32(message, &field));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return ValueChecker::CheckReal(reflection.GetDouble(message, &field));
      case FieldDescriptor::CPPTYPE_ENUM:
        return ValueChecker::CheckEnum(field, reflection.GetEnumValue(message, &field));
      case FieldDescriptor::CPPTYPE_BOOL:
        return absl::OkStatus();
      default:
        return ValueChecker::Wrong("has no rule for fields of this type");
    }
  }

  const WireLimits& limits_;
};

// Looks at the lists of a message in wire format.
class BytesChecker {
 public:
  explicit BytesChecker(const WireLimits& limits)
      : limits_(limits), messages_left_(limits.messages) {}

  absl::Status Check(const Descriptor& type, std::string_view bytes) {
    if (--messages_left_ < 0) {
      return Bad(type.name(), absl::StrCat("more than ", limits_.messages, " parts"));
    }
    std::array<int64_t, kMaxFields> counts = {};
    if (type.field_count() > kMaxFields) return Bad(type.name(), "has too many fields to check");
    WireReader reader(bytes);
    while (const std::optional<WireField> field = reader.Next()) {
      const FieldDescriptor* known = type.FindFieldByNumber(field->number);
      if (known == nullptr) continue;  // of a newer version
      if (known->is_repeated()) {
        int64_t& count = counts[static_cast<size_t>(known->index())];
        count += Elements(*known, *field);
        RETURN_IF_ERROR(CheckCount(*known, count));
      }
      // Protobuf would refuse it too, with a line in the log for each.
      if (known->type() == FieldDescriptor::TYPE_STRING && !IsUtf8(field->bytes)) {
        return Bad(FieldText(*known), "is no UTF-8");
      }
      if (known->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        if (field->type != WireType::kBytes) return Bad(FieldText(*known), "is no message");
        RETURN_IF_ERROR(Check(*known->message_type(), field->bytes));
      }
    }
    return reader.ok() ? absl::OkStatus() : Bad(type.name(), "is cut off or no message");
  }

 private:
  static constexpr int kMaxFields = 64;

  static std::string FieldText(const FieldDescriptor& field) {
    return absl::StrCat(field.containing_type()->name(), ".", field.name());
  }

  // Of a list, in this field of the wire.
  static int64_t Elements(const FieldDescriptor& known, const WireField& field) {
    if (field.type != WireType::kBytes || !known.is_packable()) return 1;
    switch (known.cpp_type()) {
      case FieldDescriptor::CPPTYPE_FLOAT:
        return static_cast<int64_t>(field.bytes.size() / 4);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return static_cast<int64_t>(field.bytes.size() / 8);
      default:
        return PackedVarintCount(field.bytes);
    }
  }

  absl::Status CheckCount(const FieldDescriptor& field, int64_t count) const {
    const ListRule* rule = FindListRule(field.containing_type()->name(), field.name());
    if (rule == nullptr) return Bad(FieldText(field), "has no rule");
    const int64_t most = rule->most.Of(limits_);
    if (count <= most) return absl::OkStatus();
    return Bad(FieldText(field), absl::StrCat("more than ", most, " entries"));
  }

  const WireLimits& limits_;
  int64_t messages_left_;
};

bool WantsValueRule(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return false;
    default:
      return !HasCodec(*field.containing_type());
  }
}

}  // namespace

absl::Status CheckMessage(const Message& message, const WireLimits& limits) {
  return At(message.GetDescriptor()->name(), MessageChecker(limits).Check(message));
}

absl::Status CheckMessageBytes(const Descriptor& type, std::string_view bytes,
                               const WireLimits& limits) {
  return BytesChecker(limits).Check(type, bytes);
}

std::string MissingMessageRules(const Descriptor& type) {
  std::string missing;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated() && FindListRule(type.name(), field.name()) == nullptr) {
      absl::StrAppend(&missing, type.name(), ".", field.name(), " (list) ");
    }
    if (WantsValueRule(field) && FindValueRule(type.name(), field.name()) == nullptr) {
      absl::StrAppend(&missing, type.name(), ".", field.name(), " ");
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      missing += MissingMessageRules(*field.message_type());
    }
  }
  return missing;
}

}  // namespace weft
