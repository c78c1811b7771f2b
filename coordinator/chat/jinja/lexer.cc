#include "coordinator/chat/jinja/lexer.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/string_escapes.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsDecimalDigit(char c) { return c >= '0' && c <= '9'; }

// All line ends as \n, and one at the end of the template removed.
std::string NormalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out.push_back(source[i] == '\r' ? '\n' : source[i]);
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : owned_(std::move(source)), source_(owned_) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < source_.size()) RETURN_IF_ERROR(ReadText());
    Emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void Emit(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  bool At(std::string_view text) const { return source_.substr(position_).starts_with(text); }

  // Moves to `end` and counts the lines passed.
  void MoveTo(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<int64_t>(position_),
                                         source_.begin() + static_cast<int64_t>(end), '\n'));
    line_starting_ = end > position_ && source_[end - 1] == '\n';
    position_ = end;
  }

  void SkipSpace() { MoveTo(position_ + LeadingSpace(source_.substr(position_))); }

  // Emits the text up to a tag as the tag's sign and kind want it.
  void EmitText(std::string_view text, char sign, bool is_variable) {
    if (sign == '-') {
      text.remove_suffix(TrailingSpace(text));
    } else if (sign != '+' && !is_variable) {
      const size_t line_start = text.rfind('\n') + 1;  // 0 if there is none
      const std::string_view tail = text.substr(line_start);
      if ((line_start > 0 || line_starting_) && LeadingSpace(tail) == tail.size()) {
        text = text.substr(0, line_start);
      }
    }
    if (!text.empty()) Emit(TokenKind::kText, std::string(text));
  }

  // One stretch of text and the tag behind it.
  absl::Status ReadText() {
    size_t tag = position_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        Emit(TokenKind::kText, std::string(source_.substr(position_)));
        MoveTo(source_.size());
        return absl::OkStatus();
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    const char sign = SignAt(tag + 2);
    EmitText(source_.substr(position_, tag - position_), sign, kind == '{');
    MoveTo(tag + (sign == 0 ? 2 : 3));
    if (kind == '#') return SkipComment();
    if (kind == '%') {
      if (const auto raw = RawTagEnd("raw", false)) return ReadRaw(*raw);
    }
    Emit(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    return ReadTag(kind == '{');
  }

  char SignAt(size_t position) const {
    if (position >= source_.size()) return 0;
    const char c = source_[position];
    return c == '-' || c == '+' ? c : '\0';
  }

  // The end of a block or comment: moves behind it and what it trims. False if it is not here.
  bool AcceptEnd(std::string_view close) {
    const char sign = SignAt(position_);
    const size_t start = position_ + (sign == 0 ? 0 : 1);
    if (!source_.substr(start).starts_with(close)) return false;
    MoveTo(start + close.size());
    if (sign == '-') {
      SkipSpaceAfterEnd();
    } else if (sign == 0 && At("\n")) {
      MoveTo(position_ + 1);
    }
    return true;
  }

  void SkipSpaceAfterEnd() {
    const size_t space = LeadingSpace(source_.substr(position_));
    if (space > 0) MoveTo(position_ + space);
  }

  absl::Status SkipComment() {
    const int line = line_;
    const size_t end = source_.find("#}", position_);
    if (end == std::string_view::npos) return ErrorAt(line, "a comment lacks its '#}'");
    const bool has_sign = end > position_ && SignAt(end - 1) != 0;
    MoveTo(has_sign ? end - 1 : end);
    AcceptEnd("#}");
    return absl::OkStatus();
  }

  // Behind "{%": the position after `name` and "%}", if they are here.
  std::optional<size_t> RawTagEnd(std::string_view name, bool trims) const {
    size_t at = position_ + LeadingSpace(source_.substr(position_));
    if (!source_.substr(at).starts_with(name)) return std::nullopt;
    at += name.size();
    at += LeadingSpace(source_.substr(at));
    const char sign = SignAt(at);
    if (sign == '+' && !trims) return std::nullopt;
    if (sign != 0) ++at;
    if (!source_.substr(at).starts_with("%}")) return std::nullopt;
    at += 2;
    if (sign == '-') return at + LeadingSpace(source_.substr(at));
    if (trims && sign == 0 && source_.substr(at).starts_with("\n")) ++at;
    return at;
  }

  absl::Status ReadRaw(size_t start) {
    const int line = line_;
    MoveTo(start);
    for (size_t tag = source_.find("{%", start); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = SignAt(tag + 2);
      const size_t text_start = position_;
      position_ = tag + (sign == 0 ? 2 : 3);
      const auto end = RawTagEnd("endraw", true);
      position_ = text_start;
      if (!end.has_value()) continue;
      EmitText(source_.substr(text_start, tag - text_start), sign, false);
      MoveTo(*end);
      return absl::OkStatus();
    }
    return ErrorAt(line, "'raw' lacks its 'endraw'");
  }

  // The tokens up to the end of a tag.
  absl::Status ReadTag(bool is_variable) {
    const int line = line_;
    brackets_.clear();
    while (true) {
      SkipSpace();
      if (position_ >= source_.size()) {
        return ErrorAt(line, is_variable ? "'{{' lacks its '}}'" : "'{%' lacks its '%}'");
      }
      if (brackets_.empty() && AcceptTagEnd(is_variable)) return absl::OkStatus();
      RETURN_IF_ERROR(ReadToken());
    }
  }

  bool AcceptTagEnd(bool is_variable) {
    const int line = line_;
    if (!is_variable) {
      if (!AcceptEnd("%}")) return false;
      tokens_.push_back({TokenKind::kBlockEnd, "", line});
      return true;
    }
    if (!At("}}") && !At("-}}")) return false;
    const bool strips = At("-");
    MoveTo(position_ + (strips ? 3 : 2));
    if (strips) SkipSpaceAfterEnd();
    tokens_.push_back({TokenKind::kVariableEnd, "", line});
    return true;
  }

  absl::Status ReadToken() {
    const char c = source_[position_];
    if (IsDecimalDigit(c)) return ReadNumber();
    if (IsNameStart(c)) return ReadName();
    if (c == '\'' || c == '"') return ReadString(c);
    return ReadOperator();
  }

  absl::Status ReadName() {
    size_t end = position_;
    while (end < source_.size() && (IsNameStart(source_[end]) || IsDecimalDigit(source_[end]))) {
      ++end;
    }
    Emit(TokenKind::kName, std::string(source_.substr(position_, end - position_)));
    MoveTo(end);
    return absl::OkStatus();
  }

  // The end of digits with single '_' between them, from `start`, or `start` if there are none.
  size_t DigitsEnd(size_t start, bool hexadecimal = false) const {
    const auto is_digit = [&](size_t i) {
      if (i >= source_.size()) return false;
      const char c = source_[i];
      const char lower = static_cast<char>(c | 0x20);
      return IsDecimalDigit(c) || (hexadecimal && lower >= 'a' && lower <= 'f');
    };
    size_t end = start;
    while (is_digit(end) ||
           (end > start && end < source_.size() && source_[end] == '_' && is_digit(end + 1))) {
      ++end;
    }
    return end;
  }

  absl::Status ReadNumber() {
    const size_t start = position_;
    size_t end = DigitsEnd(start);
    bool is_float = false;
    const char second =
        start + 1 < source_.size() ? static_cast<char>(source_[start + 1] | 0x20) : ' ';
    if (source_[start] == '0' && (second == 'x' || second == 'o' || second == 'b')) {
      end = DigitsEnd(start + 2, second == 'x');
    } else if (start == 0 || source_[start - 1] != '.') {  // not the 1 of list.1
      const size_t fraction =
          end < source_.size() && source_[end] == '.' ? DigitsEnd(end + 1) : end;
      is_float = fraction > end + 1;
      if (is_float) end = fraction;
      if (end < source_.size() && (source_[end] | 0x20) == 'e') {
        const size_t digits = end + (SignAt(end + 1) != 0 ? 2 : 1);
        const size_t exponent = DigitsEnd(digits);
        if (exponent > digits) {
          end = exponent;
          is_float = true;
        }
      }
    }
    Emit(is_float ? TokenKind::kFloat : TokenKind::kInteger,
         std::string(source_.substr(start, end - start)));
    MoveTo(end);
    return absl::OkStatus();
  }

  absl::Status ReadString(char quote) {
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return ErrorAt(line_, "a text lacks its closing quote");
    absl::StatusOr<std::string> text =
        ResolveEscapes(source_.substr(position_ + 1, end - position_ - 1));
    if (!text.ok()) return ErrorAt(line_, StdView(text.status().message()));
    Emit(TokenKind::kString, *std::move(text));
    MoveTo(end + 1);
    return absl::OkStatus();
  }

  absl::Status ReadOperator() {
    constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kShort = "+-*/%~[](){}=><:.,|;";
    const std::string_view rest = source_.substr(position_);
    size_t size = 0;
    for (const std::string_view candidate : kLong) {
      if (rest.starts_with(candidate)) size = 2;
    }
    if (size == 0 && kShort.find(rest[0]) != std::string_view::npos) size = 1;
    if (size == 0) {
      size_t end = position_;
      NextCodePoint(source_, &end);
      return ErrorAt(line_,
                     absl::StrCat("unexpected '",
                                  EscapedText(source_.substr(position_, end - position_), 8), "'"));
    }
    RETURN_IF_ERROR(Balance(rest[0]));
    Emit(TokenKind::kOperator, std::string(rest.substr(0, size)));
    MoveTo(position_ + size);
    return absl::OkStatus();
  }

  absl::Status Balance(char c) {
    const size_t open = std::string_view("([{").find(c);
    if (open != std::string_view::npos) brackets_.push_back(")]}"[open]);
    if (c != ')' && c != ']' && c != '}') return absl::OkStatus();
    if (brackets_.empty() || brackets_.back() != c) {
      return ErrorAt(line_, absl::StrCat("unexpected '", std::string(1, c), "'"));
    }
    brackets_.pop_back();
    return absl::OkStatus();
  }

  const std::string owned_;
  const std::string_view source_;
  std::vector<Token> tokens_;
  std::string brackets_;  // the closing ones that are to come
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether what was last read ended a line
};

}  // namespace

absl::Status ErrorAt(int line, std::string_view words) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", AbslView(words)));
}

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(NormalizeLines(source)).Run();
}

}  // namespace weft::jinja
