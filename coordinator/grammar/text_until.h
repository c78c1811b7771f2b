// Any text up to a word.
#pragma once

#include <string_view>

#include "coordinator/grammar/grammar.h"

namespace weft {

// Any characters, up to and with the first occurrence of `word`: UTF-8, not empty.
GrammarElement TextUntil(std::string_view word, GrammarBuilder& builder);

}  // namespace weft
