// Any text up to a word, or without it.
#pragma once

#include <string_view>

#include "coordinator/grammar/grammar.h"

namespace weft {

// Any characters, up to and with the first occurrence of `word`: UTF-8, not empty.
GrammarElement TextUntil(std::string_view word, GrammarBuilder& builder);
// Any characters among which `word` does not occur.
GrammarElement TextWithout(std::string_view word, GrammarBuilder& builder);

}  // namespace weft
