// Texts of a model, fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// `text` with everything shown that a terminal would obey: control characters but line ends and
// tabs as their pictures (U+2400 and on), those of U+0080 to U+009F and the ones that turn the
// direction of writing around as U+FFFD. Whole characters go in; what is not UTF-8 becomes U+FFFD.
std::string TerminalText(std::string_view text);

}  // namespace weft
