#include "coordinator/sampling/dry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// A penalty beyond this is as good as a ban, and small enough to be added up.
constexpr double kMostPenalty = 1e9;

// For each position i of `text`, how many tokens text[..i] and the whole of `text` have in common
// at their ends, at most `limit`: Z-boxes of the text read backwards.
std::vector<size_t> CommonEnds(absl::Span<const int32_t> text, size_t limit) {
  const size_t n = text.size();
  const auto at = [&](size_t i) { return text[n - 1 - i]; };  // read backwards
  std::vector<size_t> common(n, 0);
  size_t left = 0, right = 0;  // the box [left, right) that reaches farthest
  for (size_t i = 1; i < n; ++i) {
    size_t length = i < right ? std::min(right - i, common[n - 1 - (i - left)]) : 0;
    while (i + length < n && at(length) == at(i + length)) ++length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    common[n - 1 - i] = length;
  }
  for (size_t& length : common) length = std::min(length, limit);
  return common;
}

absl::Status CheckStrings(absl::Span<const std::string> strings) {
  if (strings.size() > kMostDryBreakers) {
    return absl::InvalidArgumentError(absl::StrCat("dry-sequence-breaker: ", strings.size(),
                                                   " strings, at most ", kMostDryBreakers));
  }
  for (const std::string& text : strings) {
    if (text.empty() || text.size() > kLongestDryBreaker) {
      return absl::InvalidArgumentError(absl::StrCat("dry-sequence-breaker: a string of ",
                                                     text.size(), " bytes, want 1 to ",
                                                     kLongestDryBreaker));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> DefaultDryBreakers() { return {"\n", ":", "\"", "*"}; }

void DryBreakers::Add(absl::Span<const int32_t> sequence) {
  if (sequence.empty() || sequence.size() > 1 + kLongestDryTail) return;
  std::vector<int32_t> tail(sequence.begin() + 1, sequence.end());
  std::vector<std::vector<int32_t>>& tails = tails_[sequence[0]];
  if (std::find(tails.begin(), tails.end(), tail) == tails.end()) tails.push_back(std::move(tail));
}

size_t DryBreakers::TokensSince(absl::Span<const int32_t> text) const {
  for (size_t back = 0; back < text.size(); ++back) {
    const auto found = tails_.find(text[text.size() - 1 - back]);
    if (found == tails_.end()) continue;
    const absl::Span<const int32_t> after = text.subspan(text.size() - back);
    size_t longest = 0;
    bool any = false;
    for (const std::vector<int32_t>& tail : found->second) {
      const bool here = tail.size() <= back && std::equal(tail.begin(), tail.end(), after.begin());
      if (!here) continue;
      any = true;
      longest = std::max(longest, tail.size());
    }
    if (any) return back - longest;
  }
  return text.size();
}

absl::StatusOr<DryBreakers> ResolveDryBreakers(absl::Span<const std::string> strings,
                                               const DryVocabulary& vocabulary) {
  RETURN_IF_ERROR(CheckStrings(strings));
  std::vector<std::vector<std::vector<int32_t>>> rests;  // by string and length of its beginning
  for (const std::string& text : strings) {
    std::vector<std::vector<int32_t>>& of_text = rests.emplace_back();
    for (size_t head = 0; head < text.size(); ++head) {
      of_text.emplace_back();
      if (head == 0) continue;
      ASSIGN_OR_RETURN(of_text.back(), vocabulary.encode(std::string_view(text).substr(head)));
    }
  }
  DryBreakers breakers;
  for (int32_t id = 0; id < vocabulary.size; ++id) {
    const std::string piece = vocabulary.piece(id);
    for (size_t s = 0; s < strings.size(); ++s) {
      const std::string& text = strings[s];
      if (piece.find(text) != std::string::npos) {
        breakers.Add({&id, 1});
        continue;
      }
      for (size_t head = 1; head < std::min(text.size(), piece.size() + 1); ++head) {
        if (piece.compare(piece.size() - head, head, text, 0, head) != 0) continue;
        std::vector<int32_t> sequence = {id};
        sequence.insert(sequence.end(), rests[s][head].begin(), rests[s][head].end());
        if (sequence.size() > 1) breakers.Add(sequence);
      }
    }
  }
  return breakers;
}

std::vector<DryPenalty> FindDryPenalties(const DryOptions& options, const DryBreakers* breakers,
                                         absl::Span<const int32_t> text) {
  if (options.multiplier == 0 || options.window == 0 || options.base < 1) return {};
  if (options.window > 0 && text.size() > static_cast<size_t>(options.window)) {
    text = text.last(static_cast<size_t>(options.window));
  }
  const size_t limit = breakers == nullptr ? text.size() : breakers->TokensSince(text);
  const size_t allowed = static_cast<size_t>(std::max(options.allowed_length, 1));
  if (limit < allowed) return {};
  const std::vector<size_t> common = CommonEnds(text, limit);
  absl::flat_hash_map<int32_t, size_t> longest;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (common[i] < allowed) continue;
    size_t& length = longest[text[i + 1]];
    length = std::max(length, common[i]);
  }
  std::vector<DryPenalty> penalties;
  for (const auto& [id, length] : longest) {
    const double power = std::pow(double{options.base}, static_cast<double>(length - allowed));
    const double penalty = std::min(options.multiplier * power, kMostPenalty);
    penalties.push_back({id, static_cast<float>(penalty)});
  }
  std::sort(penalties.begin(), penalties.end(),
            [](const DryPenalty& a, const DryPenalty& b) { return a.id < b.id; });
  return penalties;
}

}  // namespace weft
