#include "coordinator/serving/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// Bytes at the end of `text` that begin `stop`, less than all of it.
size_t HeldBytes(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const std::string& text) { return text.empty(); });
}

std::string StopMatcher::Append(std::string_view piece) {
  if (found_) return "";
  held_ += piece;
  // The one that is complete first, whatever comes in one piece; of several the longest.
  size_t first = std::string::npos;
  size_t end = std::string::npos;
  for (const std::string& text : texts_) {
    const size_t at = held_.find(text);
    if (at == std::string::npos || std::pair(at + text.size(), at) >= std::pair(end, first))
      continue;
    first = at;
    end = at + text.size();
  }
  if (first != std::string::npos) {
    found_ = true;
    held_.resize(first);
    return std::exchange(held_, "");
  }
  size_t keep = 0;
  for (const std::string& text : texts_) keep = std::max(keep, HeldBytes(held_, text));
  std::string sure = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return sure;
}

std::string StopMatcher::Finish() { return found_ ? "" : std::exchange(held_, ""); }

}  // namespace weft
