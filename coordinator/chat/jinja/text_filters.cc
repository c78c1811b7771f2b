// Filters that make texts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/json_text.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/string_functions.h"
#include "coordinator/chat/jinja/text_format.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

using Result = absl::StatusOr<Value>;

constexpr int64_t kMaxIndent = 1000;

template <std::string (*kFunction)(std::string_view)>
Result Transform(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the filter takes no arguments");
  const std::string text = ToText(runtime, self);
  if (!runtime.ChargeBytes(text.size() * 8)) return runtime.status();
  return runtime.String(kFunction(text));
}

// As Jinja's own title: a word starts after white space, '-' or an opening bracket.
std::string TitleWords(std::string_view text) {
  const auto is_break = [](char32_t c) {
    return IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const bool breaks = is_break(NextCodePoint(text, &i));
    const size_t first_end = i;
    while (i < text.size()) {
      size_t next = i;
      if (is_break(NextCodePoint(text, &next)) != breaks) break;
      i = next;
    }
    absl::StrAppend(&out, Upper(text.substr(start, first_end - start)),
                    Lower(text.substr(first_end, i - first_end)));
  }
  return out;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

std::string Same(std::string_view text) { return std::string(text); }

Result Trim(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("trim", arguments, {"chars"}));
  const std::string text = ToText(runtime, self);
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  if (!bound.Given(0) || bound[0].Is(Kind::kNone)) {
    return runtime.String(std::string(Strip(text, nullptr, true, true)));
  }
  ASSIGN_OR_RETURN(const std::string set, bound.Text(0, ""));
  if (!runtime.Charge(static_cast<int64_t>((set.size() / 64 + 1) * text.size() / 8))) {
    return runtime.status();
  }
  return runtime.String(std::string(Strip(text, &set, true, true)));
}

Result ReplaceFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("replace", arguments, {"old", "new", "count"}, 2));
  const bool has_count = bound.Given(2) && !bound[2].Is(Kind::kNone);
  ASSIGN_OR_RETURN(const int64_t count, has_count ? bound.Integer(2, -1) : int64_t{-1});
  const std::string text = ToText(runtime, self);
  const std::string from = ToText(runtime, bound[0]);
  const std::string to = ToText(runtime, bound[1]);
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  ASSIGN_OR_RETURN(std::string replaced, Replace(runtime, text, from, to, count));
  return runtime.String(std::move(replaced));
}

Result Indent(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("indent", arguments, {"width", "first", "blank"}));
  if (!self.Is(Kind::kString)) return MisuseError("indent wants a text, not", self);
  std::string indent;
  if (bound.Given(0) && bound[0].Is(Kind::kString)) {
    indent = bound[0].AsString();
  } else {
    ASSIGN_OR_RETURN(const int64_t width, bound.Integer(0, 4));
    if (width > kMaxIndent) return Error("indent is too wide");
    indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = bound.Flag(2, false);
  const std::string text = absl::StrCat(self.AsString(), "\n");
  if (!runtime.ChargeBytes(text.size() * 8)) return runtime.status();
  const std::vector<std::string_view> lines = SplitLines(text, false);
  const auto count = static_cast<int64_t>(lines.size());
  if (!runtime.HasRoom(SaturatingMultiply(count, static_cast<int64_t>(indent.size()) + 1))) {
    return runtime.status();
  }
  std::string out = bound.Flag(1, false) ? indent : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (blank || !lines[i].empty())) out += indent;
    out += lines[i];
  }
  return runtime.String(std::move(out));
}

Result WordCount(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.empty()) return Error("the filter takes no arguments");
  const std::string text = ToText(runtime, self);
  if (!runtime.ChargeBytes(text.size())) return runtime.status();
  int64_t count = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    const bool is_word = IsLetter(c) || IsDigit(c, true) || c == '_';
    count += is_word && !in_word ? 1 : 0;
    in_word = is_word;
  }
  return Value::Integer(count);
}

Result Format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    return Error("format takes values with or without names, not both");
  }
  const std::string pattern = ToText(runtime, self);
  if (arguments.keywords.empty()) {
    return FormatPercent(runtime, pattern, runtime.Tuple(arguments.positional));
  }
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(arguments.keywords.size());
  for (const auto& [name, value] : arguments.keywords) {
    entries.emplace_back(runtime.String(name), value);
  }
  return FormatPercent(runtime, pattern, runtime.Dict(std::move(entries)));
}

Result Join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound, BoundArguments::Bind("join", arguments, {"d", "attribute"}));
  Value items = self;
  if (bound.Given(1) && !bound[1].Is(Kind::kNone)) {
    Arguments mapping;
    mapping.keywords.emplace_back("attribute", bound[1]);
    ASSIGN_OR_RETURN(items, ApplyFilter(runtime, "map", self, mapping));
  }
  ASSIGN_OR_RETURN(const std::vector<Value> elements, Elements(runtime, items));
  ASSIGN_OR_RETURN(std::string text, JoinTexts(runtime, elements, ToText(runtime, bound[0])));
  return runtime.String(std::move(text));
}

absl::StatusOr<JsonLayout> ReadLayout(const BoundArguments& bound) {
  JsonLayout layout;
  layout.ensure_ascii = bound.Flag(0, false);
  layout.sort_keys = bound.Flag(3, false);
  layout.has_indent = bound.Given(1) && !bound[1].Is(Kind::kNone);
  if (layout.has_indent && bound[1].Is(Kind::kString)) {
    layout.indent = bound[1].AsString();
  } else if (layout.has_indent) {
    ASSIGN_OR_RETURN(const int64_t width, bound.Integer(1, 0));
    if (width > kMaxIndent) return Error("the indent of tojson is too wide");
    layout.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (!bound.Given(2) || bound[2].Is(Kind::kNone)) return layout;
  if (!bound[2].Is(Kind::kSequence) || bound[2].AsSequence().items.size() != 2 ||
      !bound[2].AsSequence().items[0].Is(Kind::kString) ||
      !bound[2].AsSequence().items[1].Is(Kind::kString)) {
    return Error("the separators of tojson are two texts");
  }
  layout.has_separators = true;
  layout.item_separator = bound[2].AsSequence().items[0].AsString();
  layout.key_separator = bound[2].AsSequence().items[1].AsString();
  return layout;
}

// As Hugging Face defines it: json.dumps without escapes for HTML.
Result JsonFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const auto bound,
                   BoundArguments::Bind("tojson", arguments,
                                        {"ensure_ascii", "indent", "separators", "sort_keys"}));
  ASSIGN_OR_RETURN(const JsonLayout layout, ReadLayout(bound));
  ASSIGN_OR_RETURN(std::string text, ToJson(runtime, self, layout));
  return runtime.String(std::move(text));
}

constexpr FilterRow kFilters[] = {
    {"capitalize", Transform<Capitalize>},
    {"e", Transform<EscapeHtml>},
    {"escape", Transform<EscapeHtml>},
    {"format", Format},
    {"indent", Indent},
    {"join", Join},
    {"lower", Transform<Lower>},
    {"replace", ReplaceFilter},
    {"safe", Transform<Same>},
    {"string", Transform<Same>},
    {"title", Transform<TitleWords>},
    {"tojson", JsonFilter},
    {"trim", Trim},
    {"upper", Transform<Upper>},
    {"wordcount", WordCount},
};

}  // namespace

std::span<const FilterRow> TextFilters() { return kFilters; }

}  // namespace weft::jinja
