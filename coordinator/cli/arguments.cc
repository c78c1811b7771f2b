#include "coordinator/cli/arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 9> kOneDashNames = {"-ub", "-ctk", "-ctv", "-ngl", "-np",
                                                           "-mg", "-ts",  "-sm",  "-ot"};

}  // namespace

std::vector<std::string> NormalizeArguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i >= 1; --i) {
    std::string argument = argv[i];
    const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
    if (std::find(kOneDashNames.begin(), kOneDashNames.end(), name) != kOneDashNames.end()) {
      argument = absl::StrCat("-", argument);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace weft
