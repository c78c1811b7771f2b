#include "coordinator/tokenizer/decode_cleanup.h"

namespace weft {
namespace {

std::string DropSpacesBeforePunctuation(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool is_dropped =
        text[i] == ' ' && (next == '?' || next == '!' || next == '.' || next == ',');
    if (!is_dropped) out.push_back(text[i]);
  }
  return out;
}

std::string DropSpacesAroundApostrophe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == " ' ") {
      out.push_back('\'');
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string DropSpacesBeforeContractions(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const bool is_dropped = rest.substr(0, 3) == " 's" || rest.substr(0, 3) == " 'm" ||
                            rest.substr(0, 4) == " 're" || rest.substr(0, 4) == " 've";
    if (!is_dropped) out.push_back(text[i]);
  }
  return out;
}

}  // namespace

std::string CleanUpSpaces(std::string_view text) {
  return DropSpacesBeforeContractions(
      DropSpacesAroundApostrophe(DropSpacesBeforePunctuation(text)));
}

}  // namespace weft
