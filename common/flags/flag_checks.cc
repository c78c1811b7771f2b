#include "common/flags/flag_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace weft {
namespace {

constexpr char kEmptyValue[] = "the value is empty; is a variable not set?";

// Empty where there is nothing wrong.
std::string FaultOf(const std::string& value, bool integer) {
  if (value.empty()) return kEmptyValue;
  if (!integer) return "";
  errno = 0;
  std::strtoll(value.c_str(), nullptr, 10);
  return errno == ERANGE ? "'" + value + "' is beyond what a number of 64 bits holds" : "";
}

}  // namespace

void CheckFlagValues(CLI::App& app, std::initializer_list<const char*> texts) {
  const auto may_be_empty = [texts](const CLI::Option& option) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const char* name) { return option.check_lname(name); });
  };
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    const bool flag = option->get_items_expected_max() == 0;  // without a value
    if (flag || option->get_positional() || may_be_empty(*option)) continue;
    // Sizes are "INT:SIZE [...]".
    const bool integer = option->get_type_name().rfind("INT", 0) == 0;
    option->check([integer](const std::string& value) { return FaultOf(value, integer); });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    CheckFlagValues(*command, texts);
  }
}

std::string FindValuelessFlag(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.rfind("--", 0) == 0 && argument.find('=') == argument.size() - 1) {
      return argument.substr(0, argument.size() - 1) + ": " + kEmptyValue;
    }
  }
  return "";
}

int PrintHelp(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream stream;
  app.exit(error, stream, stream);
  const std::string text = stream.str();
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace weft
