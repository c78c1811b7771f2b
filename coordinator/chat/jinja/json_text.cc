#include "coordinator/chat/jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

std::string JsonFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return FloatText(value);
}

void AppendUnicodeEscape(char32_t c, std::string* out) {
  if (c > 0xFFFF) {
    absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned>(0xD800 + ((c - 0x10000) >> 10)));
    c = 0xDC00 + ((c - 0x10000) & 0x3FF);
  }
  absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned>(c));
}

void AppendJsonString(std::string_view text, bool ensure_ascii, std::string* out) {
  out->push_back('"');
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = NextCodePoint(text, &i);
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    const size_t found = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (found != std::string_view::npos) {
      out->push_back('\\');
      out->push_back(kLetters[found]);
    } else if (c < 0x20 || (ensure_ascii && c > 0x7E)) {
      AppendUnicodeEscape(c, out);
    } else {
      out->append(text.substr(start, i - start));
    }
  }
  out->push_back('"');
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonLayout& layout) : runtime_(runtime), layout_(layout) {
    item_separator_ = layout.has_separators ? layout.item_separator
                      : layout.has_indent   ? ","
                                            : ", ";
    key_separator_ = layout.has_separators ? layout.key_separator : ": ";
  }

  absl::Status Write(const Value& value) {
    if (!runtime_.Charge(1) || !runtime_.HasRoom(static_cast<int64_t>(out_.size()))) {
      return runtime_.status();
    }
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        return absl::OkStatus();
      case Kind::kBool:
        out_ += value.AsBool() ? "true" : "false";
        return absl::OkStatus();
      case Kind::kInteger:
        absl::StrAppend(&out_, value.AsInteger());
        return absl::OkStatus();
      case Kind::kFloat:
        out_ += JsonFloat(value.AsDouble());
        return absl::OkStatus();
      case Kind::kString:
        runtime_.ChargeBytes(value.AsString().size());
        AppendJsonString(value.AsString(), layout_.ensure_ascii, &out_);
        return absl::OkStatus();
      case Kind::kMapping:
        return WriteMapping(value.AsMapping());
      case Kind::kSequence:
        if (value.AsSequence().form <= Sequence::Form::kTuple) {
          return WriteItems(value.AsSequence());
        }
        [[fallthrough]];
      default:
        return MisuseError("JSON cannot say", value);
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  bool NewLine() {
    if (!layout_.has_indent) return true;
    const auto size = static_cast<int64_t>(layout_.indent.size()) * depth_;
    if (!runtime_.HasRoom(size) || !runtime_.ChargeBytes(static_cast<size_t>(size))) return false;
    out_.push_back('\n');
    for (int i = 0; i < depth_; ++i) out_ += layout_.indent;
    return true;
  }

  absl::Status WriteItems(const Sequence& sequence) {
    if (sequence.items.empty()) {
      out_ += "[]";
      return absl::OkStatus();
    }
    out_ += "[";
    ++depth_;
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!first) out_ += item_separator_;
      first = false;
      if (!NewLine()) return runtime_.status();
      RETURN_IF_ERROR(Write(item));
    }
    --depth_;
    if (!NewLine()) return runtime_.status();
    out_ += "]";
    return absl::OkStatus();
  }

  // Python's json turns plain keys into text.
  absl::Status WriteKey(const Value& key) {
    if (key.Is(Kind::kString)) return Write(key);
    if (!key.IsNumber() && !key.Is(Kind::kNone)) return MisuseError("a key in JSON cannot be", key);
    out_ += "\"";
    RETURN_IF_ERROR(Write(key));
    out_ += "\"";
    return absl::OkStatus();
  }

  absl::Status WriteMapping(const Mapping& mapping) {
    if (mapping.entries.empty()) {
      out_ += "{}";
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const auto order, KeyOrder(mapping));
    out_ += "{";
    ++depth_;
    bool first = true;
    for (const size_t i : order) {
      if (!first) out_ += item_separator_;
      first = false;
      if (!NewLine()) return runtime_.status();
      RETURN_IF_ERROR(WriteKey(mapping.entries[i].first));
      out_ += key_separator_;
      RETURN_IF_ERROR(Write(mapping.entries[i].second));
    }
    --depth_;
    if (!NewLine()) return runtime_.status();
    out_ += "}";
    return absl::OkStatus();
  }

  // The positions of the entries as they are to be written.
  absl::StatusOr<std::vector<size_t>> KeyOrder(const Mapping& mapping) {
    std::vector<size_t> order(mapping.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!layout_.sort_keys) return order;
    if (mapping.by_text.size() != order.size()) {
      return Error("only text keys can be sorted in JSON");
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return mapping.entries[a].first.AsString() < mapping.entries[b].first.AsString();
    });
    return order;
  }

  Runtime& runtime_;
  const JsonLayout& layout_;
  std::string item_separator_;
  std::string key_separator_;
  std::string out_;
  int depth_ = 0;
};

class JsonReader {
 public:
  explicit JsonReader(Runtime& runtime) : runtime_(runtime) {}

  absl::StatusOr<Value> Read(const nlohmann::ordered_json& json) {
    if (depth_ > runtime_.limits().value_depth) {
      return runtime_.Exhaust("lists and dicts inside each other", runtime_.limits().value_depth);
    }
    if (!runtime_.Charge(1)) return runtime_.status();
    if (json.is_null()) return Value::None();
    if (const auto* flag = json.get_ptr<const bool*>()) return Value::Bool(*flag);
    if (const auto* positive = json.get_ptr<const uint64_t*>()) {
      if (*positive > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Value::Float(static_cast<double>(*positive));
      }
      return Value::Integer(static_cast<int64_t>(*positive));
    }
    if (const auto* integer = json.get_ptr<const int64_t*>()) return Value::Integer(*integer);
    if (const auto* number = json.get_ptr<const double*>()) return Value::Float(*number);
    if (const auto* text = json.get_ptr<const std::string*>()) return ReadText(*text);
    ++depth_;
    absl::StatusOr<Value> value = json.is_object()  ? ReadObject(json)
                                  : json.is_array() ? ReadArray(json)
                                                    : Error("not a JSON value");
    --depth_;
    return value;
  }

 private:
  absl::StatusOr<Value> ReadText(const std::string& text) {
    if (!IsUtf8(text)) return Error("a text is not UTF-8");
    return runtime_.String(text);
  }

  absl::StatusOr<Value> ReadArray(const nlohmann::ordered_json& json) {
    std::vector<Value> items;
    for (const auto& item : json) {
      ASSIGN_OR_RETURN(Value value, Read(item));
      items.push_back(std::move(value));
    }
    return runtime_.List(std::move(items));
  }

  absl::StatusOr<Value> ReadObject(const nlohmann::ordered_json& json) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, member] : json.items()) {
      ASSIGN_OR_RETURN(Value key, ReadText(name));
      ASSIGN_OR_RETURN(Value value, Read(member));
      entries.emplace_back(std::move(key), std::move(value));
    }
    return runtime_.Dict(std::move(entries));
  }

  Runtime& runtime_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<std::string> ToJson(Runtime& runtime, const Value& value, const JsonLayout& layout) {
  JsonWriter writer(runtime, layout);
  RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

absl::StatusOr<Value> FromJson(Runtime& runtime, const nlohmann::ordered_json& json) {
  ASSIGN_OR_RETURN(Value value, JsonReader(runtime).Read(json));
  RETURN_IF_ERROR(runtime.status());
  return value;
}

}  // namespace weft::jinja
