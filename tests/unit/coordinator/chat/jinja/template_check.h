// One hostile template; shared by the fuzz target and the mutation test.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

// Renders `source` over a small conversation with tools under tight limits, and aborts if the
// result is no UTF-8, larger than allowed, or an error without a line.
void CheckTemplate(std::string_view source);

}  // namespace weft
