// The command line before CLI11 sees it.
#pragma once

#include <string>
#include <vector>

namespace weft {

// argv without the program, in CLI11's order (last first). Names of several letters that the field
// writes with one dash (-ub, -ngl, also -ngl=20) get the second; CLI11 would read them as -u b.
std::vector<std::string> NormalizeArguments(int argc, const char* const* argv);

}  // namespace weft
