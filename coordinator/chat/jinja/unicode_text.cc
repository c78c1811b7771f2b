#include "coordinator/chat/jinja/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "coordinator/chat/jinja/special_casing.h"

namespace weft::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kDottedI = 0x130;

utf8proc_category_t Category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

char32_t SimpleUpper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

char32_t SimpleLower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

void AppendUpper(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const SpecialCase* special = FindSpecialCase(c)) {
    out->append(special->upper);
  } else {
    AppendCodePoint(SimpleUpper(c), out);
  }
}

void AppendTitle(char32_t c, std::string* out) {
  if (const SpecialCase* special = FindSpecialCase(c)) {
    out->append(special->title);
  } else {
    AppendCodePoint(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), out);
  }
}

// Whether letters pass over this character when they look for their neighbours: Unicode's
// Case_Ignorable, nearly.
bool IsCaseIgnorable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019;
  }
}

// The start of the character that ends at `end` > 0.
size_t PreviousStart(std::string_view text, size_t end) {
  size_t start = end - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

// Whether the sigma at `position` of `size` bytes ends its word.
bool IsFinalSigma(std::string_view text, size_t position, size_t size) {
  bool letter_before = false;
  for (size_t end = position; end > 0;) {
    size_t start = PreviousStart(text, end);
    end = start;
    const char32_t c = NextCodePoint(text, &start);
    if (IsCaseIgnorable(c)) continue;
    letter_before = IsCased(c);
    break;
  }
  if (!letter_before) return false;
  for (size_t i = position + size; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    if (!IsCaseIgnorable(c)) return !IsCased(c);
  }
  return true;
}

// Appends the lower-case form of the character at `*position` and moves behind it.
void AppendLowerAt(std::string_view text, size_t* position, std::string* out) {
  const size_t start = *position;
  const char32_t c = NextCodePoint(text, position);
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == kSigma) {
    AppendCodePoint(IsFinalSigma(text, start, *position - start) ? kFinalSigma : kSmallSigma, out);
  } else if (c == kDottedI) {
    out->append("i\xCC\x87");
  } else {
    AppendCodePoint(SimpleLower(c), out);
  }
}

}  // namespace

int64_t CodePointCount(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

char32_t NextCodePoint(std::string_view text, size_t* position) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  };
  const size_t at = *position;
  const char32_t first = byte(at);
  if (first < 0xC0) {
    *position = at + 1;
    return first;
  }
  if (first < 0xE0) {
    *position = at + 2;
    return (first & 0x1F) << 6 | (byte(at + 1) & 0x3F);
  }
  if (first < 0xF0) {
    *position = at + 3;
    return (first & 0x0F) << 12 | (byte(at + 1) & 0x3F) << 6 | (byte(at + 2) & 0x3F);
  }
  *position = at + 4;
  return (first & 0x07) << 18 | (byte(at + 1) & 0x3F) << 12 | (byte(at + 2) & 0x3F) << 6 |
         (byte(at + 3) & 0x3F);
}

void AppendCodePoint(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

std::vector<size_t> CodePointOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (size_t i = 0; i < text.size(); NextCodePoint(text, &i)) offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

size_t LeadingSpace(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    size_t next = end;
    if (!IsSpace(NextCodePoint(text, &next))) break;
    end = next;
  }
  return end;
}

size_t TrailingSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t start = PreviousStart(text, end);
    size_t next = start;
    if (!IsSpace(NextCodePoint(text, &next))) break;
    end = start;
  }
  return text.size() - end;
}

bool IsLetter(char32_t c) {
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDigit(char32_t c, bool any_number) {
  const utf8proc_category_t category = Category(c);
  if (category == UTF8PROC_CATEGORY_ND) return true;
  return any_number && (category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO);
}

bool IsUpper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }

bool IsLower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || Category(c) == UTF8PROC_CATEGORY_LT; }

bool IsPrintable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

std::string Upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) AppendUpper(NextCodePoint(text, &i), &out);
  return out;
}

std::string Lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) AppendLowerAt(text, &i, &out);
  return out;
}

std::string Title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    size_t next = i;
    const char32_t c = NextCodePoint(text, &next);
    if (in_word) {
      AppendLowerAt(text, &i, &out);
    } else {
      AppendTitle(c, &out);
      i = next;
    }
    in_word = IsCased(c);
  }
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  size_t i = 0;
  if (!text.empty()) AppendTitle(NextCodePoint(text, &i), &out);
  while (i < text.size()) AppendLowerAt(text, &i, &out);
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t next = i;
    const char32_t c = NextCodePoint(text, &next);
    if (IsUpper(c)) {
      AppendLowerAt(text, &i, &out);
      continue;
    }
    if (IsLower(c)) {
      AppendUpper(c, &out);
    } else {
      AppendCodePoint(c, &out);
    }
    i = next;
  }
  return out;
}

}  // namespace weft::jinja
