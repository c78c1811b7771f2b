#include "coordinator/chat/text_guard.h"

#include <array>
#include <string_view>
#include <utility>

#include "coordinator/chat/reply_markers.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

// Code points that are no characters, set apart for such uses.
constexpr char32_t kFirstGuard = 0xFDD0;
constexpr size_t kGuards = 32;
constexpr std::string_view kGuardBytes = "\xEF\xB7";  // the first two of each; the third counts up
constexpr uint8_t kFirstThirdByte = 0x90;

using Used = std::array<bool, kGuards>;

void MarkUsed(std::string_view text, Used& used) {
  for (size_t at = text.find(kGuardBytes); at != text.npos; at = text.find(kGuardBytes, at + 1)) {
    if (at + 2 >= text.size()) return;
    const auto which = static_cast<size_t>(static_cast<uint8_t>(text[at + 2]) - kFirstThirdByte);
    if (which < kGuards) used[which] = true;
  }
}

void FindGuards(const Json& value, Used& used) {
  if (const auto* text = value.get_ptr<const std::string*>()) MarkUsed(*text, used);
  if (!value.is_structured()) return;
  for (const auto& [key, inner] : value.items()) {
    MarkUsed(key, used);
    FindGuards(inner, used);
  }
}

}  // namespace

absl::StatusOr<TextGuard> TextGuard::Create(const Tokenizer& tokenizer,
                                            const std::vector<const Json*>& texts) {
  Used used = {};
  for (const Json* text : texts) FindGuards(*text, used);
  for (size_t i = 0; i < kGuards; ++i) {
    if (used[i]) continue;
    std::string guard;
    AppendUtf8(kFirstGuard + static_cast<char32_t>(i), &guard);
    return TextGuard(tokenizer, std::move(guard));
  }
  return absl::InvalidArgumentError(
      "messages: the texts hold all of U+FDD0 to U+FDEF, which are no characters");
}

std::string TextGuard::GuardText(const std::string& text, bool keeps_thoughts) const {
  const std::vector<size_t> starts = tokenizer_->FindControlTexts(text);
  if (starts.empty()) return text;
  std::string guarded;
  size_t done = 0;
  for (const size_t start : starts) {
    const std::string_view rest = std::string_view(text).substr(start);
    const bool of_thoughts =
        rest.starts_with(marker::kThink) || rest.starts_with(marker::kEndThink);
    if (keeps_thoughts && of_thoughts) continue;
    guarded.append(text, done, start - done);
    guarded += guard_;
    done = start;
  }
  return guarded.append(text, done);
}

Json TextGuard::GuardValue(const Json& value, bool keeps_thoughts) const {
  if (const auto* text = value.get_ptr<const std::string*>()) {
    return GuardText(*text, keeps_thoughts);
  }
  if (value.is_array()) {
    Json copy = Json::array();
    for (const Json& inner : value) copy.push_back(GuardValue(inner, keeps_thoughts));
    return copy;
  }
  if (!value.is_object()) return value;
  const auto role = value.find("role");
  const bool said = keeps_thoughts || (role != value.end() && *role == "assistant");
  Json copy = Json::object();
  for (const auto& [key, inner] : value.items()) {
    copy[GuardText(key, false)] = GuardValue(inner, said);
  }
  return copy;
}

Json TextGuard::Guard(const Json& value) const { return GuardValue(value, false); }

GuardedText TextGuard::TakeOut(const std::string& rendered) const {
  GuardedText result;
  size_t done = 0;
  for (size_t at = rendered.find(guard_); at != rendered.npos; at = rendered.find(guard_, done)) {
    result.text.append(rendered, done, at - done);
    result.plain.push_back(result.text.size());
    done = at + guard_.size();
  }
  result.text.append(rendered, done);
  return result;
}

}  // namespace weft
