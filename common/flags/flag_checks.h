// What no value of a flag may be, whichever flag it is; and how help is printed.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace weft {

// Refuses, for every flag of `app` and its commands: empty values, for they are most likely
// variables that are not set, and would switch off what the flag is for; and numbers beyond 64
// bits, of which parsers take the nearest. `texts`: long names of flags that may be empty.
// Positional arguments are not looked at. Once all flags are there.
void CheckFlagValues(CLI::App& app, std::initializer_list<const char*> texts = {});

// Empty, or what is wrong with the first argument that is a flag with "=" and nothing behind it, of
// which the parser would take the next argument as the value, whatever it is. `arguments` without
// the program's name.
std::string FindValuelessFlag(const std::vector<std::string>& arguments);

// Prints what --help or --version asks for. Returns the exit code: 1 where it cannot be written.
int PrintHelp(const CLI::App& app, const CLI::ParseError& error);

}  // namespace weft
