#include "coordinator/tokenizer/special_tokens.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"

namespace weft {
namespace {

bool IsSpecial(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
}

// A place where a token could be: the longest that fits there, as far as known.
struct Candidate {
  size_t length = 0;
  TokenId id = kNoToken;
  size_t start = 0;
};

// True if `a` comes after `b`.
struct ComesLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::tie(a.length, b.id, b.start) < std::tie(b.length, a.id, a.start);
  }
};

// A token that was found, and the white space that is dropped with it.
struct Found {
  size_t start = 0;
  size_t end = 0;
  TokenId id = kNoToken;
};

// Which bytes of the text are taken. A byte each: looking along a token is cheaper than a search.
class TakenBytes {
 public:
  explicit TakenBytes(size_t size) : taken_(size, 0) {}

  bool IsTaken(size_t position) const { return taken_[position] != 0; }
  void Take(size_t start, size_t end) {
    for (size_t position = start; position < end; ++position) taken_[position] = 1;
  }
  // The first taken byte of [start, end); `end` if all are free.
  size_t FirstTaken(size_t start, size_t end) const {
    size_t position = start;
    while (position < end && !IsTaken(position)) ++position;
    return position;
  }

 private:
  std::vector<uint8_t> taken_;
};

std::vector<TextFragment> CutFragments(std::string_view text, std::vector<Found> found) {
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.start < b.start; });
  std::vector<TextFragment> fragments;
  size_t done = 0;
  for (const Found& token : found) {
    if (token.start > done) fragments.push_back({.raw = text.substr(done, token.start - done)});
    fragments.push_back({.token = token.id});
    done = token.end;
  }
  if (done < text.size()) fragments.push_back({.raw = text.substr(done)});
  return fragments;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, bool strips_right)
    : vocabulary_(vocabulary), strips_right_(strips_right) {
  std::vector<Entry> all;
  std::vector<Entry> user_defined, control;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (!IsSpecial(vocabulary.type(id)) || text.empty()) continue;
    if (text.size() > kSpecialTextLimit) {
      ++ignored_count_;
      continue;
    }
    all.push_back({text, id});
    (vocabulary.type(id) == TokenType::kUserDefined ? user_defined : control).push_back({text, id});
  }
  all_ = BuildIndex(std::move(all));
  user_defined_ = BuildIndex(std::move(user_defined));
  control_ = BuildIndex(std::move(control));
}

SpecialTokens::Index SpecialTokens::BuildIndex(std::vector<Entry> entries) {
  // Of equal texts the last id stays, as in the vocabulary's own index.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.text, b.id) < std::tie(b.text, a.id);
  });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const Entry& a, const Entry& b) { return a.text == b.text; }),
                entries.end());
  Index index;
  index.first.assign(257, 0);
  for (const Entry& entry : entries) ++index.first[static_cast<uint8_t>(entry.text[0]) + 1];
  for (int byte = 0; byte < 256; ++byte) index.first[byte + 1] += index.first[byte];
  index.entries = std::move(entries);
  return index;
}

SpecialTokens::Entry SpecialTokens::FindLongest(const Index& index, std::string_view text) {
  if (text.empty()) return {};
  const auto first_byte = static_cast<uint8_t>(text[0]);
  auto low = index.entries.begin() + static_cast<ptrdiff_t>(index.first[first_byte]);
  auto high = index.entries.begin() + static_cast<ptrdiff_t>(index.first[first_byte + 1]);
  Entry longest;
  // [low, high) holds the entries that share the first `depth` bytes with `text`.
  for (size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth) {
      longest = *low;
      ++low;  // it sorts before those that go on
    }
    if (depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[depth]);
    low = std::partition_point(low, high, [&](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]) < byte;
    });
    high = std::partition_point(low, high, [&](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]) == byte;
    });
  }
  return longest;
}

bool SpecialTokens::StripsRight(TokenId id) const {
  if (!strips_right_) return false;
  const std::string_view text = vocabulary_.text(id);
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

std::vector<size_t> SpecialTokens::FindControlTexts(std::string_view text) const {
  std::vector<size_t> starts;
  for (size_t start = 0; start < text.size() && !control_.entries.empty(); ++start) {
    if (FindLongest(control_, text.substr(start)).id != kNoToken) starts.push_back(start);
  }
  return starts;
}

std::vector<TextFragment> SpecialTokens::Partition(std::string_view text, bool parse_special,
                                                   absl::Span<const size_t> plain) const {
  const Index& all = parse_special ? all_ : user_defined_;
  const auto index_at = [&](size_t start) -> const Index& {
    return std::binary_search(plain.begin(), plain.end(), start) ? user_defined_ : all;
  };
  std::vector<Candidate> candidates;
  for (size_t start = 0; start < text.size() && !all.entries.empty(); ++start) {
    const Entry longest = FindLongest(index_at(start), text.substr(start));
    if (longest.id != kNoToken) candidates.push_back({longest.text.size(), longest.id, start});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, ComesLater> queue(ComesLater(),
                                                                           std::move(candidates));
  TakenBytes taken(queue.empty() ? 0 : text.size());
  std::vector<Found> found;
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    if (taken.IsTaken(candidate.start)) continue;
    const size_t end = candidate.start + candidate.length;
    const size_t limit = taken.FirstTaken(candidate.start, end);
    if (limit < end) {
      // Something longer took the end of it; what is left may hold a shorter token.
      const Entry shorter = FindLongest(index_at(candidate.start),
                                        text.substr(candidate.start, limit - candidate.start));
      if (shorter.id != kNoToken) queue.push({shorter.text.size(), shorter.id, candidate.start});
      continue;
    }
    size_t taken_end = end;
    while (StripsRight(candidate.id) && taken_end < text.size() && !taken.IsTaken(taken_end) &&
           absl::ascii_isspace(static_cast<unsigned char>(text[taken_end]))) {
      ++taken_end;
    }
    taken.Take(candidate.start, taken_end);
    found.push_back({candidate.start, taken_end, candidate.id});
  }
  return CutFragments(text, std::move(found));
}

}  // namespace weft
