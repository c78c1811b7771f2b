// What no value of a flag may be, whichever flag it is.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <string>

namespace weft {

// Empty where there is nothing wrong. An empty value is most likely a variable that is not set, and
// would switch off what the flag is for; parsers take the nearest one for a number that is too
// large.
inline std::string FlagValueFault(const std::string& value, bool integer) {
  if (value.empty()) return "the value is empty; is a variable not set?";
  if (!integer) return "";
  errno = 0;
  std::strtoll(value.c_str(), nullptr, 10);
  return errno == ERANGE ? "'" + value + "' is beyond what a number of 64 bits holds" : "";
}

}  // namespace weft
