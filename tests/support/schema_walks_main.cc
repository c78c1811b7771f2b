// Reads a line with a JSON schema at a time and answers with a line of JSON: {"error":"..."}, or
// {"texts":[...],"ignored":[...]} with texts drawn from the masks of its grammar. For
// tests/integration/json_schema_test.py. Arguments: seed, texts for each schema.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "coordinator/grammar/json_schema.h"
#include "tests/support/number_argument.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

namespace weft {
namespace {

Json Walk(const std::string& line, int count, Random& random) {
  absl::StatusOr<SchemaGrammar> made = SchemaToGrammar(std::string_view(line));
  if (!made.ok()) return {{"error", std::string(made.status().message())}};
  const auto grammar = std::make_shared<const Grammar>(std::move(made->grammar));
  const auto trie = MakeTrie({"\",\"", "\":", "true", "false", "null", "{\"", "\"}", "],", "123",
                              "é", "\xE2\x82", "ab", " \"", "0.5", "e-", "\\\"", "\\u00", "\n  "});
  Json texts = Json::array();
  for (int i = 0; i < count; ++i) {
    const auto matcher = GrammarMatcher::Create(grammar, trie);
    if (!matcher.ok()) return {{"error", std::string(matcher.status().message())}};
    const absl::StatusOr<std::string> text =
        RandomText(**matcher, *trie, random.Between(0, 60), random);
    if (text.ok()) {
      texts.push_back(*text);
    } else if (text.status().code() != absl::StatusCode::kDeadlineExceeded) {
      return {{"error", std::string(text.status().message())}};
    }
  }
  return {{"texts", texts}, {"ignored", made->ignored}};
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Random random(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
  const int count = argc > 2 ? weft::NumberArgument<int>(argv[2]) : 10;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << weft::Walk(line, count, random).dump() << '\n' << std::flush;
  }
  return 0;
}
