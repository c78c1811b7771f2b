// Methods of texts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/attributes.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/string_functions.h"
#include "coordinator/chat/jinja/text_format.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

template <std::string (*kFunction)(std::string_view)>
Result WithoutArguments(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the method takes no arguments");
  if (!runtime.ChargeBytes(self.AsString().size() * 8)) return runtime.status();
  return runtime.String(kFunction(self.AsString()));
}

template <bool kLeft, bool kRight>
Result StripMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("strip", arguments, {"chars"}));
  std::string set;
  const bool has_set = bound.Given(0) && !bound[0].Is(Kind::kNone);
  if (has_set) {
    ASSIGN_OR_RETURN(set, bound.Text(0, ""));
    // Each character of the text may be looked for in all of the set.
    if (!runtime.Charge(static_cast<int64_t>((set.size() / 64 + 1) * self.AsString().size() / 8))) {
      return runtime.status();
    }
  }
  return runtime.String(
      std::string(Strip(self.AsString(), has_set ? &set : nullptr, kLeft, kRight)));
}

Value Pieces(Runtime& runtime, const std::vector<std::string_view>& pieces, bool reverse = false) {
  if (!runtime.HasRoom(static_cast<int64_t>(pieces.size()) * 128)) return Value();
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(runtime.String(std::string(piece)));
  if (reverse) std::reverse(items.begin(), items.end());
  return runtime.List(std::move(items));
}

// Before a text is cut: it may fall into as many pieces as it has bytes.
bool HasRoomForPieces(Runtime& runtime, std::string_view text) {
  return runtime.ChargeBytes(text.size() * 8) &&
         runtime.HasRoom(static_cast<int64_t>(text.size() * sizeof(std::string_view)));
}

std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  text.remove_prefix(LeadingSpace(text));
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(pieces.size()) == limit) {
      pieces.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      size_t next = end;
      if (IsSpace(NextCodePoint(text, &next))) break;
      end = next;
    }
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(LeadingSpace(text));
  }
  return pieces;
}

// From the end; the pieces come in reverse order.
std::vector<std::string_view> SplitAtSpaceFromEnd(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  text.remove_suffix(TrailingSpace(text));
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(pieces.size()) == limit) {
      pieces.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0 && TrailingSpace(text.substr(0, start)) == 0) {
      --start;
      while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    }
    pieces.push_back(text.substr(start));
    text.remove_suffix(text.size() - start);
    text.remove_suffix(TrailingSpace(text));
  }
  return pieces;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t limit) {
  std::vector<std::string_view> pieces;
  while (limit < 0 || static_cast<int64_t>(pieces.size()) < limit) {
    const size_t found = text.find(separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  pieces.push_back(text);
  return pieces;
}

std::vector<std::string_view> SplitAtFromEnd(std::string_view text, std::string_view separator,
                                             int64_t limit) {
  std::vector<std::string_view> pieces;
  while (limit < 0 || static_cast<int64_t>(pieces.size()) < limit) {
    const size_t found = text.rfind(separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(found + separator.size()));
    text = text.substr(0, found);
  }
  pieces.push_back(text);
  return pieces;
}

template <bool kFromEnd>
Result Split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("split", arguments, {"sep", "maxsplit"}));
  ASSIGN_OR_RETURN(const int64_t limit, bound.Integer(1, -1));
  const std::string& text = self.AsString();
  if (!HasRoomForPieces(runtime, text)) return runtime.status();
  if (!bound.Given(0) || bound[0].Is(Kind::kNone)) {
    return Pieces(runtime, kFromEnd ? SplitAtSpaceFromEnd(text, limit) : SplitAtSpace(text, limit),
                  kFromEnd);
  }
  ASSIGN_OR_RETURN(const std::string separator, bound.Text(0, ""));
  if (separator.empty()) return Error("split() cannot cut at an empty text");
  return Pieces(runtime,
                kFromEnd ? SplitAtFromEnd(text, separator, limit) : SplitAt(text, separator, limit),
                kFromEnd);
}

Result SplitLinesMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("splitlines", arguments, {"keepends"}));
  if (!HasRoomForPieces(runtime, self.AsString())) return runtime.status();
  return Pieces(runtime, SplitLines(self.AsString(), bound.Flag(0, false)));
}

template <bool kFromEnd>
Result Partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("partition", arguments, {"sep"}, 1));
  ASSIGN_OR_RETURN(const std::string separator, bound.Text(0, ""));
  if (separator.empty()) return Error("partition() cannot cut at an empty text");
  const std::string& text = self.AsString();
  const size_t found = kFromEnd ? text.rfind(separator) : text.find(separator);
  if (found == std::string::npos) {
    const Value empty = runtime.String("");
    return kFromEnd ? runtime.Tuple({empty, empty, self}) : runtime.Tuple({self, empty, empty});
  }
  return runtime.Tuple({runtime.String(text.substr(0, found)), runtime.String(separator),
                        runtime.String(text.substr(found + separator.size()))});
}

// The part of a text between two positions given as Python's `start` and `end`.
struct Window {
  std::string_view text;
  int64_t start = 0;    // in code points
  bool exists = false;  // false: `start` lies behind the end, and nothing is found there
};

absl::StatusOr<Window> WindowOf(Runtime& runtime, const Value& self, const BoundArguments& bound,
                                size_t start_index) {
  const int64_t length = self.AsText().code_points;
  const auto at = [&](size_t i, int64_t if_none) -> absl::StatusOr<int64_t> {
    if (!bound.Given(i) || bound[i].Is(Kind::kNone)) return if_none;
    ASSIGN_OR_RETURN(const int64_t position, bound.Integer(i, 0));
    return position < 0 ? std::max<int64_t>(position < -length ? 0 : position + length, 0)
                        : position;
  };
  ASSIGN_OR_RETURN(const int64_t start, at(start_index, 0));
  ASSIGN_OR_RETURN(int64_t end, at(start_index + 1, length));
  if (!runtime.ChargeBytes(self.AsString().size())) return runtime.status();
  end = std::min(end, length);
  if (start > end) return Window{"", start, false};
  if (start == 0 && end == length) return Window{self.AsString(), 0, true};
  if (!runtime.HasRoom(length * 8)) return runtime.status();
  const std::vector<size_t> offsets = CodePointOffsets(self.AsString());
  const size_t from = offsets[static_cast<size_t>(start)];
  const size_t to = offsets[static_cast<size_t>(end)];
  return Window{std::string_view(self.AsString()).substr(from, to - from), start, true};
}

template <bool kFromEnd, bool kMustFind>
Result Find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("find", arguments, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const std::string wanted, bound.Text(0, ""));
  ASSIGN_OR_RETURN(const Window window, WindowOf(runtime, self, bound, 1));
  const size_t found = !window.exists ? std::string_view::npos
                       : kFromEnd     ? window.text.rfind(wanted)
                                      : window.text.find(wanted);
  if (found != std::string_view::npos) {
    return Value::Integer(window.start + CodePointCount(window.text.substr(0, found)));
  }
  if (kMustFind) return Error("index() did not find the text");
  return Value::Integer(-1);
}

Result CountMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("count", arguments, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const std::string wanted, bound.Text(0, ""));
  ASSIGN_OR_RETURN(const Window window, WindowOf(runtime, self, bound, 1));
  if (!window.exists) return Value::Integer(0);
  if (wanted.empty()) return Value::Integer(CodePointCount(window.text) + 1);
  if (!HasRoomForPieces(runtime, window.text)) return runtime.status();
  return Value::Integer(static_cast<int64_t>(SplitAt(window.text, wanted, -1).size()) - 1);
}

template <bool kAtEnd>
Result StartsWith(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("startswith", arguments, {"prefix", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Window window, WindowOf(runtime, self, bound, 1));
  std::vector<Value> affixes = {bound[0]};
  if (bound[0].Is(Kind::kSequence) && bound[0].AsSequence().form == Sequence::Form::kTuple) {
    affixes = bound[0].AsSequence().items;
  }
  bool found = false;
  for (const Value& affix : affixes) {
    if (!affix.Is(Kind::kString)) return MisuseError("a text cannot start or end with", affix);
    if (found || !window.exists) continue;
    const std::string& text = affix.AsString();
    if (!runtime.ChargeBytes(text.size())) return runtime.status();
    found = kAtEnd ? window.text.ends_with(text) : window.text.starts_with(text);
  }
  return Value::Bool(found);
}

template <bool kAtEnd>
Result RemoveAffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("removeprefix", arguments, {"affix"}, 1));
  ASSIGN_OR_RETURN(const std::string affix, bound.Text(0, ""));
  std::string_view text = self.AsString();
  if (kAtEnd && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!kAtEnd && text.starts_with(affix)) text.remove_prefix(affix.size());
  return runtime.String(std::string(text));
}

Result ReplaceMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("replace", arguments, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const std::string from, bound.Text(0, ""));
  ASSIGN_OR_RETURN(const std::string to, bound.Text(1, ""));
  ASSIGN_OR_RETURN(const int64_t count, bound.Integer(2, -1));
  if (!runtime.ChargeBytes(self.AsString().size())) return runtime.status();
  ASSIGN_OR_RETURN(std::string text, Replace(runtime, self.AsString(), from, to, count));
  return runtime.String(std::move(text));
}

Result Join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("join", arguments, {"iterable"}, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime, bound[0]));
  for (const Value& item : items) {
    if (!item.Is(Kind::kString)) return MisuseError("join() wants texts, not", item);
  }
  ASSIGN_OR_RETURN(std::string text, JoinTexts(runtime, items, self.AsString()));
  return runtime.String(std::move(text));
}

Result Format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return FormatBraces(runtime, self.AsString(), arguments);
}

enum class Side { kLeft, kRight, kCenter };

// ljust, rjust and center.
template <Side kText>
Result Justify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("ljust", arguments, {"width", "fillchar"}, 1));
  ASSIGN_OR_RETURN(const int64_t width, bound.Integer(0, 0));
  ASSIGN_OR_RETURN(const std::string fill, bound.Text(1, " "));
  if (CodePointCount(fill) != 1) return Error("the filling must be one character");
  if (width <= self.AsText().code_points) return self;
  const int64_t missing = width - self.AsText().code_points;
  if (!runtime.HasRoom(std::min(missing, runtime.limits().memory_bytes) * 4)) {
    return runtime.status();
  }
  // center() puts the odd one where CPython does.
  const int64_t left = kText == Side::kLeft    ? 0
                       : kText == Side::kRight ? missing
                                               : missing / 2 + (missing & width & 1);
  std::string text;
  for (int64_t i = 0; i < left; ++i) text += fill;
  text += self.AsString();
  for (int64_t i = left; i < missing; ++i) text += fill;
  return runtime.String(std::move(text));
}

Result ZeroFill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("zfill", arguments, {"width"}, 1));
  ASSIGN_OR_RETURN(const int64_t width, bound.Integer(0, 0));
  const int64_t missing = width - self.AsText().code_points;
  if (missing <= 0) return self;
  if (!runtime.HasRoom(missing)) return runtime.status();
  std::string text = self.AsString();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  text.insert(sign, static_cast<size_t>(missing), '0');
  return runtime.String(std::move(text));
}

template <bool (*kPredicate)(char32_t)>
Result AllCharacters(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the method takes no arguments");
  const std::string& text = self.AsString();
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  bool all = !text.empty();
  for (size_t i = 0; all && i < text.size();) all = kPredicate(NextCodePoint(text, &i));
  return Value::Bool(all);
}

bool IsDecimal(char32_t c) { return IsDigit(c); }
bool IsNumeric(char32_t c) { return IsDigit(c, true); }
bool IsLetterOrNumber(char32_t c) { return IsLetter(c) || IsDigit(c, true); }

// isupper and islower: some cased character, and none of the other case.
template <bool kUpper>
Result HasCase(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the method takes no arguments");
  const std::string& text = self.AsString();
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  bool some = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    if (kUpper ? IsUpper(c) : IsLower(c)) {
      some = true;
    } else if (IsCased(c)) {
      return Value::Bool(false);
    }
  }
  return Value::Bool(some);
}

Result IsAscii(Runtime&, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the method takes no arguments");
  return Value::Bool(self.AsText().code_points == static_cast<int64_t>(self.AsString().size()));
}

constexpr MethodRow kStringMethods[] = {
    {"capitalize", WithoutArguments<Capitalize>},
    {"center", Justify<Side::kCenter>},
    {"count", CountMethod},
    {"endswith", StartsWith<true>},
    {"find", Find<false, false>},
    {"format", Format},
    {"index", Find<false, true>},
    {"isalnum", AllCharacters<IsLetterOrNumber>},
    {"isalpha", AllCharacters<IsLetter>},
    {"isascii", IsAscii},
    {"isdecimal", AllCharacters<IsDecimal>},
    {"isdigit", AllCharacters<IsDecimal>},
    {"islower", HasCase<false>},
    {"isnumeric", AllCharacters<IsNumeric>},
    {"isspace", AllCharacters<IsSpace>},
    {"isupper", HasCase<true>},
    {"join", Join},
    {"ljust", Justify<Side::kLeft>},
    {"lower", WithoutArguments<Lower>},
    {"lstrip", StripMethod<true, false>},
    {"partition", Partition<false>},
    {"removeprefix", RemoveAffix<false>},
    {"removesuffix", RemoveAffix<true>},
    {"replace", ReplaceMethod},
    {"rfind", Find<true, false>},
    {"rindex", Find<true, true>},
    {"rjust", Justify<Side::kRight>},
    {"rpartition", Partition<true>},
    {"rsplit", Split<true>},
    {"rstrip", StripMethod<false, true>},
    {"split", Split<false>},
    {"splitlines", SplitLinesMethod},
    {"startswith", StartsWith<false>},
    {"strip", StripMethod<true, true>},
    {"swapcase", WithoutArguments<SwapCase>},
    {"title", WithoutArguments<Title>},
    {"upper", WithoutArguments<Upper>},
    {"zfill", ZeroFill},
};

}  // namespace

std::optional<Value> StringMethod(Runtime& runtime, const Value& object, std::string_view name) {
  for (const MethodRow& row : kStringMethods) {
    if (row.name == name) return runtime.Function(row.name, row.function, object);
  }
  return std::nullopt;
}

}  // namespace weft::jinja
