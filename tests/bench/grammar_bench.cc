// Time of masks for a JSON grammar over a vocabulary of 128 Ki tokens: at each token of random
// texts, whether or not the state was met before, and of single tokens as they are asked for from
// candidates.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "coordinator/grammar/grammar_matcher.h"
#include "coordinator/grammar/json_schema.h"

namespace weft {
namespace {

constexpr int32_t kTokens = 128 * 1024;

// Words as byte-pair vocabularies have them: most of letters, some with a space before, digits,
// brackets, other scripts.
std::vector<std::string> MakeWords(Random& random) {
  std::vector<std::string> words;
  words.reserve(kTokens);
  for (int byte = 0; byte < 256; ++byte) words.emplace_back(1, static_cast<char>(byte));
  while (std::ssize(words) < kTokens - 1) {
    std::string word = random.Between(0, 1) == 0 ? " " : "";
    const int64_t kind = random.Between(0, 19);
    for (int64_t n = random.Between(2, 9); n > 0; --n) {
      if (kind == 0) {
        word += static_cast<char>('0' + random.Between(0, 9));
      } else if (kind == 1) {
        word += "{}[]\",: \n\\"[random.Between(0, 9)];
      } else if (kind < 5) {
        word += static_cast<char>(0xD0 + random.Between(0, 1));
        word += static_cast<char>(0x80 + random.Between(0, 63));
      } else {
        word += "etaoinshrdlucmfwypvbgkjqxz"[random.Between(0, 5) * random.Between(0, 5)];
      }
    }
    words.push_back(word);
  }
  return words;
}

double Percentile(std::vector<double>& us, double share) {
  std::sort(us.begin(), us.end());
  return us[static_cast<size_t>(share * static_cast<double>(us.size() - 1))];
}

int Run() {
  const SystemClock clock;
  Random random(1);
  const std::vector<std::string> words = MakeWords(random);
  const Clock::TimePoint start = clock.Now();
  const auto trie = std::make_shared<const TokenTrie>(
      kTokens, [&](int32_t id) { return words[static_cast<size_t>(id)]; },
      [](int32_t id) { return id == kTokens - 1; });
  std::printf("trie: %.0f ms, %zu nodes\n", 1e3 * SecondsSince(clock, start), trie->nodes().size());
  const std::string_view schema =
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":60},"age":{"type":"integer"},
          "tags":{"type":"array","items":{"type":"string"}},"more":{}},"required":["name","tags","more"]})";
  for (const std::string_view text : {std::string_view(R"({"type":"object"})"), schema}) {
    absl::StatusOr<SchemaGrammar> made = SchemaToGrammar(text);
    if (!made.ok()) return 1;
    const auto grammar = std::make_shared<const Grammar>(std::move(made->grammar));
    std::vector<double> masks, singles;
    for (int walk = 0; walk < 40; ++walk) {
      auto matcher = GrammarMatcher::Create(grammar, trie);
      if (!matcher.ok()) return 1;
      for (int step = 0; step < 40; ++step) {
        Clock::TimePoint at = clock.Now();
        const absl::StatusOr<TokenMask> mask = (*matcher)->Mask(kTokens);
        masks.push_back(1e6 * SecondsSince(clock, at));
        if (!mask.ok()) return 1;
        at = clock.Now();
        for (int i = 0; i < 64; ++i) {
          (void)(*matcher)->Allows(static_cast<int32_t>(random.Between(0, kTokens - 1)));
        }
        singles.push_back(1e6 * SecondsSince(clock, at) / 64);
        int32_t id = static_cast<int32_t>(random.Between(0, kTokens - 1));
        while (!mask->Contains(id)) id = (id + 1) % kTokens;
        if (id == kTokens - 1 || !(*matcher)->Accept(id).ok()) break;
      }
    }
    std::printf(
        "%s: mask median %.1f us, 99 %% %.1f us, largest %.1f us; token of candidates "
        "%.2f us; %zu masks\n",
        std::string(text.substr(0, 40)).c_str(), Percentile(masks, 0.5), Percentile(masks, 0.99),
        Percentile(masks, 1), Percentile(singles, 0.5), masks.size());
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main() { return weft::Run(); }
