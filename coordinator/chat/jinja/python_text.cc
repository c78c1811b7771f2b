#include "coordinator/chat/jinja/python_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

class ReprWriter {
 public:
  explicit ReprWriter(Runtime& runtime) : runtime_(runtime) {}

  void Write(const Value& value) {
    // Namespaces can contain themselves.
    if (depth_ > 2 * runtime_.limits().value_depth) {
      runtime_.Exhaust("lists and dicts inside each other", runtime_.limits().value_depth);
    }
    if (!runtime_.Charge(1) || !runtime_.HasRoom(static_cast<int64_t>(out_.size()))) return;
    ++depth_;
    WriteKind(value);
    --depth_;
  }

  std::string Take() { return runtime_.exhausted() ? std::string() : std::move(out_); }

 private:
  void WriteKind(const Value& value) {
    switch (value.kind()) {
      case Kind::kUndefined:
        out_ += "Undefined";
        break;
      case Kind::kNone:
        out_ += "None";
        break;
      case Kind::kBool:
        out_ += value.AsBool() ? "True" : "False";
        break;
      case Kind::kInteger:
        absl::StrAppend(&out_, value.AsInteger());
        break;
      case Kind::kFloat:
        out_ += FloatText(value.AsDouble());
        break;
      case Kind::kString:
        runtime_.ChargeBytes(value.AsString().size());
        out_ += QuotedText(value.AsString());
        break;
      case Kind::kSequence:
        WriteSequence(value.AsSequence());
        break;
      case Kind::kMapping:
        WriteMapping(value.AsMapping());
        break;
      case Kind::kNamespace:
        WriteNamespace(value.AsNamespace());
        break;
      case Kind::kLoop:
        absl::StrAppend(&out_, "<LoopContext ", value.AsLoop().index + 1, "/",
                        value.AsLoop().length, ">");
        break;
      case Kind::kCallable:
        absl::StrAppend(&out_, "<function ", AbslView(value.AsCallable().name), ">");
        break;
    }
  }

  void WriteItems(const Sequence& sequence, std::string_view open, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < sequence.items.size() && !runtime_.exhausted(); ++i) {
      if (i > 0) out_ += ", ";
      Write(sequence.items[i]);
    }
    out_ += close;
  }

  void WriteSequence(const Sequence& sequence) {
    switch (sequence.form) {
      case Sequence::Form::kList:
        return WriteItems(sequence, "[", "]");
      case Sequence::Form::kTuple:
        return WriteItems(sequence, "(", sequence.items.size() == 1 ? ",)" : ")");
      case Sequence::Form::kKeys:
        return WriteItems(sequence, "dict_keys([", "])");
      case Sequence::Form::kValues:
        return WriteItems(sequence, "dict_values([", "])");
      case Sequence::Form::kItems:
        return WriteItems(sequence, "dict_items([", "])");
      case Sequence::Form::kIterator:
        out_ += "<iterator>";
        return;
      case Sequence::Form::kRange:
        absl::StrAppend(&out_, "range(", sequence.range_start, ", ", sequence.range_stop);
        if (sequence.range_step != 1) absl::StrAppend(&out_, ", ", sequence.range_step);
        out_ += ")";
        return;
    }
  }

  void WriteMapping(const Mapping& mapping) {
    out_ += "{";
    bool first = true;
    for (const auto& [key, value] : mapping.entries) {
      if (runtime_.exhausted()) return;
      if (!first) out_ += ", ";
      first = false;
      Write(key);
      out_ += ": ";
      Write(value);
    }
    out_ += "}";
  }

  void WriteNamespace(const Namespace& space) {
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [name, value] : space.attributes) {
      if (runtime_.exhausted()) return;
      absl::StrAppend(&out_, first ? "" : ", ", QuotedText(name), ": ");
      first = false;
      Write(value);
    }
    out_ += "}>";
  }

  Runtime& runtime_;
  std::string out_;
  int depth_ = 0;
};

void AppendEscape(char32_t c, std::string* out) {
  if (c <= 0xFF) {
    absl::StrAppendFormat(out, "\\x%02x", static_cast<unsigned>(c));
  } else if (c <= 0xFFFF) {
    absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned>(c));
  } else {
    absl::StrAppendFormat(out, "\\U%08x", static_cast<unsigned>(c));
  }
}

}  // namespace

std::string ToText(Runtime& runtime, const Value& value) {
  if (value.Is(Kind::kString)) return value.AsString();
  if (value.Is(Kind::kUndefined)) return "";
  return ToRepr(runtime, value);
}

std::string ToRepr(Runtime& runtime, const Value& value) {
  ReprWriter writer(runtime);
  writer.Write(value);
  return writer.Take();
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  // -d.ddde+xx
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text[0] == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t mark = text.find('e');
  int exponent = 0;  // of what to_chars wrote: it parses
  (void)absl::SimpleAtoi(AbslView(text.substr(mark + 1)), &exponent);
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    absl::StrAppend(&out, digits.substr(0, 1), count > 1 ? "." : "", digits.substr(1));
    absl::StrAppendFormat(&out, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    const int zeros = -exponent - 1;
    absl::StrAppend(&out, "0.", std::string(static_cast<size_t>(zeros), '0'), digits);
  } else if (count <= exponent + 1) {
    const int zeros = exponent + 1 - count;
    absl::StrAppend(&out, digits, std::string(static_cast<size_t>(zeros), '0'), ".0");
  } else {
    const size_t point = static_cast<size_t>(exponent) + 1;
    absl::StrAppend(&out, digits.substr(0, point), ".", digits.substr(point));
  }
  return out;
}

std::string QuotedText(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = NextCodePoint(text, &i);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x7F ? c < 0x20 : !IsPrintable(c)) {
      AppendEscape(c, &out);
    } else {
      out.append(text.substr(start, i - start));
    }
  }
  out.push_back(quote);
  return out;
}

}  // namespace weft::jinja
