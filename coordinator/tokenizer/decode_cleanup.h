// The clean-up of spaces that some vocabularies ask for after decoding.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Three passes over the bytes: delete a space before ? ! . and ,; delete both spaces around a lone
// apostrophe; delete a space before 's 'm 're and 've (not before 't 'd 'll). Loses spaces that
// were meant.
// Source: spec chapter I.7.
std::string CleanUpSpaces(std::string_view text);

}  // namespace weft
