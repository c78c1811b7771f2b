#include "coordinator/chat/jinja/text_format.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

// Widths and precisions above this are refused.
constexpr int64_t kMaxWidth = 1000;

struct Conversion {
  bool minus = false, plus = false, space = false, zero = false, sharp = false;
  int64_t width = 0;
  int64_t precision = -1;
  char letter = 's';
};

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, std::string_view pattern, const Value& values)
      : runtime_(runtime), pattern_(pattern), values_(values) {
    is_tuple_ = values.Is(Kind::kSequence) && values.AsSequence().form == Sequence::Form::kTuple;
  }

  absl::StatusOr<Value> Run() {
    while (position_ < pattern_.size()) {
      const char c = pattern_[position_++];
      if (c != '%') {
        out_.push_back(c);
        continue;
      }
      RETURN_IF_ERROR(Convert());
      if (!runtime_.Charge(1) || !runtime_.HasRoom(static_cast<int64_t>(out_.size()))) {
        return runtime_.status();
      }
    }
    const bool is_dict = values_.Is(Kind::kMapping);
    const size_t count = is_tuple_ ? values_.AsSequence().items.size() : 1;
    const bool is_list = values_.Is(Kind::kSequence) && !is_tuple_;
    if (used_ < count && !is_dict && !(is_list && used_ == 0)) {
      return Error("more values than '%' in the pattern");
    }
    return runtime_.String(std::move(out_));
  }

 private:
  bool Accept(char c) {
    if (position_ >= pattern_.size() || pattern_[position_] != c) return false;
    ++position_;
    return true;
  }

  absl::StatusOr<int64_t> Number() {
    if (Accept('*')) {
      ASSIGN_OR_RETURN(const Value value, Next());
      if (!value.IsIntegral() || value.AsInteger() < 0 || value.AsInteger() > kMaxWidth) {
        return Error("a width in a pattern is no small number");
      }
      return value.AsInteger();
    }
    int64_t number = 0;
    while (position_ < pattern_.size() && pattern_[position_] >= '0' &&
           pattern_[position_] <= '9') {
      number = number * 10 + (pattern_[position_++] - '0');
      if (number > kMaxWidth) return Error("a width in a pattern is too large");
    }
    return number;
  }

  absl::StatusOr<Value> Next() {
    if (!is_tuple_ && used_ == 0) {
      ++used_;
      return values_;
    }
    if (!is_tuple_ || used_ >= values_.AsSequence().items.size()) {
      return Error("fewer values than '%' in the pattern");
    }
    return values_.AsSequence().items[used_++];
  }

  absl::Status Convert() {
    std::optional<Value> named;
    if (Accept('(')) {
      const size_t end = pattern_.find(')', position_);
      if (end == std::string_view::npos) return Error("'%(' in a pattern lacks its ')'");
      const std::string name(pattern_.substr(position_, end - position_));
      position_ = end + 1;
      if (!values_.Is(Kind::kMapping)) return Error("'%(name)' in a pattern wants a dict");
      const Value* found = values_.AsMapping().Find(name);
      if (found == nullptr) return Error(absl::StrCat("a pattern wants the key '", name, "'"));
      named = *found;
    }
    Conversion conversion;
    ReadFlags(&conversion);
    ASSIGN_OR_RETURN(conversion.width, Number());
    if (Accept('.')) {
      ASSIGN_OR_RETURN(conversion.precision, Number());
    }
    if (position_ >= pattern_.size()) return Error("a pattern ends after '%'");
    conversion.letter = pattern_[position_++];
    if (conversion.letter == '%') {
      out_.push_back('%');
      return absl::OkStatus();
    }
    if (!named.has_value()) {
      ASSIGN_OR_RETURN(named, Next());
    }
    ASSIGN_OR_RETURN(const std::string body, Body(conversion, *named));
    Pad(conversion, body);
    return absl::OkStatus();
  }

  void ReadFlags(Conversion* conversion) {
    while (position_ < pattern_.size()) {
      const char c = pattern_[position_];
      bool* flag = c == '-'   ? &conversion->minus
                   : c == '+' ? &conversion->plus
                   : c == ' ' ? &conversion->space
                   : c == '0' ? &conversion->zero
                   : c == '#' ? &conversion->sharp
                              : nullptr;
      if (flag == nullptr) return;
      *flag = true;
      ++position_;
    }
  }

  absl::StatusOr<std::string> Body(const Conversion& conversion, const Value& value) {
    switch (conversion.letter) {
      case 's':
        return Cut(conversion, ToText(runtime_, value));
      case 'r':
        return Cut(conversion, ToRepr(runtime_, value));
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return IntegerBody(conversion, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.IsNumber()) return MisuseError("a number in a pattern cannot be", value);
        return FloatBody(conversion, value.AsDouble());
      case 'c':
        if (value.Is(Kind::kString) && value.AsText().code_points == 1) return value.AsString();
        [[fallthrough]];
      default:
        return Error(absl::StrCat("a pattern has '%", std::string(1, conversion.letter),
                                  "', which is unknown or does not fit its value"));
    }
  }

  static std::string Cut(const Conversion& conversion, std::string text) {
    if (conversion.precision >= 0 && conversion.precision < CodePointCount(text)) {
      text.resize(CodePointOffsets(text)[static_cast<size_t>(conversion.precision)]);
    }
    return text;
  }

  static std::string Signed(const Conversion& conversion, bool negative,
                            const std::string& digits) {
    return absl::StrCat(negative           ? "-"
                        : conversion.plus  ? "+"
                        : conversion.space ? " "
                                           : "",
                        digits);
  }

  static absl::StatusOr<std::string> IntegerBody(const Conversion& conversion, const Value& value) {
    const bool decimal =
        conversion.letter == 'd' || conversion.letter == 'i' || conversion.letter == 'u';
    int64_t number = 0;
    if (value.IsIntegral()) {
      number = value.AsInteger();
    } else if (decimal && value.Is(Kind::kFloat) && std::fabs(value.AsDouble()) < 9e18) {
      number = static_cast<int64_t>(value.AsDouble());
    } else {
      return MisuseError("an integer in a pattern cannot be", value);
    }
    const uint64_t magnitude =
        number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    std::string digits;
    switch (conversion.letter) {
      case 'x':
        digits = absl::StrFormat("%x", magnitude);
        break;
      case 'X':
        digits = absl::StrFormat("%X", magnitude);
        break;
      case 'o':
        digits = absl::StrFormat("%o", magnitude);
        break;
      default:
        digits = absl::StrCat(magnitude);
    }
    if (conversion.precision > static_cast<int64_t>(digits.size())) {
      digits.insert(0, static_cast<size_t>(conversion.precision) - digits.size(), '0');
    }
    if (conversion.sharp && !decimal) {
      digits = absl::StrCat("0", std::string(1, conversion.letter), digits);
    }
    return Signed(conversion, number < 0, digits);
  }

  static absl::StatusOr<std::string> FloatBody(const Conversion& conversion, double value) {
    const bool upper = conversion.letter < 'a';
    if (std::isnan(value)) return Signed(conversion, false, upper ? "NAN" : "nan");
    std::string digits;
    const int precision = conversion.precision < 0 ? 6 : static_cast<int>(conversion.precision);
    const double magnitude = std::fabs(value);
    switch (conversion.letter) {
      case 'e':
        digits = absl::StrFormat("%.*e", precision, magnitude);
        break;
      case 'E':
        digits = absl::StrFormat("%.*E", precision, magnitude);
        break;
      case 'g':
        digits = absl::StrFormat("%.*g", precision, magnitude);
        break;
      case 'G':
        digits = absl::StrFormat("%.*G", precision, magnitude);
        break;
      default:
        digits = absl::StrFormat("%.*f", precision, magnitude);
        if (upper && std::isinf(value)) digits = "INF";
    }
    return Signed(conversion, std::signbit(value), digits);
  }

  void Pad(const Conversion& conversion, const std::string& body) {
    const int64_t missing = conversion.width - CodePointCount(body);
    const std::string fill(
        static_cast<size_t>(std::max<int64_t>(missing, 0)),
        conversion.zero && IsNumeric(conversion.letter) && !conversion.minus ? '0' : ' ');
    if (conversion.minus) {
      absl::StrAppend(&out_, body, fill);
    } else if (!fill.empty() && fill[0] == '0') {
      const size_t sign = body.find_first_not_of("+- ") == 1 ? 1 : 0;
      absl::StrAppend(&out_, body.substr(0, sign), fill, body.substr(sign));
    } else {
      absl::StrAppend(&out_, fill, body);
    }
  }

  static bool IsNumeric(char letter) { return letter != 's' && letter != 'r' && letter != 'c'; }

  Runtime& runtime_;
  const std::string_view pattern_;
  const Value& values_;
  bool is_tuple_ = false;
  size_t used_ = 0;
  size_t position_ = 0;
  std::string out_;
};

// The value that the text between braces names.
class BraceField {
 public:
  BraceField(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  absl::StatusOr<std::string> Text(std::string_view field) {
    const size_t colon = field.find(':');
    if (colon != std::string_view::npos && colon + 1 < field.size()) {
      return Error("format() knows no format after a colon");
    }
    field = field.substr(0, colon);
    const size_t mark = field.find('!');
    const std::string_view conversion =
        mark == std::string_view::npos ? "" : field.substr(mark + 1);
    field = field.substr(0, mark);
    const size_t name_end = std::min(field.find_first_of(".["), field.size());
    ASSIGN_OR_RETURN(Value value, First(field.substr(0, name_end)));
    RETURN_IF_ERROR(Follow(field.substr(name_end), &value));
    if (conversion == "r") return ToRepr(runtime_, value);
    if (!conversion.empty() && conversion != "s") return Error("format() knows only !r and !s");
    return ToText(runtime_, value);
  }

 private:
  absl::StatusOr<Value> First(std::string_view name) {
    int64_t index = next_;
    if (name.empty()) {
      if (numbered_) return Error("format() cannot mix {} and {0}");
      ++next_;
    } else if (!absl::SimpleAtoi(AbslView(name), &index)) {
      for (const auto& [key, value] : arguments_.keywords) {
        if (key == name) return value;
      }
      return Error(absl::StrCat("format() lacks '", AbslView(name), "'"));
    } else {
      if (next_ > 0) return Error("format() cannot mix {} and {0}");
      numbered_ = true;
    }
    if (index < 0 || index >= static_cast<int64_t>(arguments_.positional.size())) {
      return Error(absl::StrCat("format() lacks argument ", index));
    }
    return arguments_.positional[static_cast<size_t>(index)];
  }

  // Applies [index] and [key].
  absl::Status Follow(std::string_view path, Value* value) {
    while (!path.empty()) {
      const size_t end = path.find(']');
      if (path[0] != '[' || end == std::string_view::npos) {
        return Error("format() follows only [index]");
      }
      const std::string_view name = path.substr(1, end - 1);
      int64_t index = 0;
      const Value key = absl::SimpleAtoi(AbslView(name), &index)
                            ? Value::Integer(index)
                            : runtime_.String(std::string(name));
      std::optional<Value> item = ItemAt(runtime_, *value, key);
      if (!item.has_value()) {
        return Error(absl::StrCat("format() finds no '", AbslView(name), "'"));
      }
      *value = *std::move(item);
      path.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  int64_t next_ = 0;
  bool numbered_ = false;  // whether a field had a number
};

}  // namespace

absl::StatusOr<Value> FormatPercent(Runtime& runtime, std::string_view pattern,
                                    const Value& values) {
  return PercentFormatter(runtime, pattern, values).Run();
}

absl::StatusOr<Value> FormatBraces(Runtime& runtime, std::string_view pattern,
                                   const Arguments& arguments) {
  BraceField fields(runtime, arguments);
  std::string out;
  for (size_t i = 0; i < pattern.size();) {
    const char c = pattern[i++];
    if (c != '{' && c != '}') {
      out.push_back(c);
      continue;
    }
    if (i < pattern.size() && pattern[i] == c) {
      out.push_back(c);
      ++i;
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (c == '}' || end == std::string_view::npos) return Error("a brace in format() stands alone");
    ASSIGN_OR_RETURN(const std::string text, fields.Text(pattern.substr(i, end - i)));
    if (!runtime.HasRoom(static_cast<int64_t>(out.size() + text.size())) ||
        !runtime.ChargeBytes(text.size())) {
      return runtime.status();
    }
    out += text;
    i = end + 1;
  }
  return runtime.String(std::move(out));
}

}  // namespace weft::jinja
