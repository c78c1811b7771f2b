// libFuzzer target: hostile GBNF, and walks through what it means.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "coordinator/grammar/gbnf_parser.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::GrammarLimits limits;
  limits.elements = 5'000;
  limits.rules = 2'000;
  limits.repetition = 500;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<weft::Grammar> grammar = weft::ParseGbnf(text, limits);
  if (grammar.ok()) weft::CheckGrammar(*grammar, size);
  return 0;
}
