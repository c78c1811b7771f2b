// libFuzzer target: hostile JSON schemas, and walks through their grammars.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "coordinator/grammar/json_schema.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::GrammarLimits limits;
  limits.elements = 20'000;
  limits.rules = 5'000;
  limits.repetition = 500;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<weft::SchemaGrammar> made = weft::SchemaToGrammar(text, limits);
  if (made.ok()) weft::CheckGrammar(made->grammar, size);
  return 0;
}
