// Renders templates for tests/integration/jinja_test.py, which compares with Jinja in Python. Reads
// JSON lines {"template": text, "context": object} and answers each with {"text": ...} or
// {"error": ...}. Its clock stands at 2024-07-26 09:05:03.
#include <ctime>
#include <iostream>
#include <string>

#include "coordinator/chat/jinja/template.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

absl::StatusOr<std::string> Answer(const nlohmann::ordered_json& request) {
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_sec = 3;
  now.tm_wday = 5;
  now.tm_yday = 207;
  auto parsed = jinja::Template::Parse(request["template"].get<std::string>());
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(request["context"], now);
}

}  // namespace
}  // namespace weft

// NOLINTNEXTLINE(bugprone-exception-escape): it reads what the test wrote, and may end.
int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!request.is_object()) return 1;
    const auto text = weft::Answer(request);
    nlohmann::ordered_json answer;
    if (text.ok()) {
      answer["text"] = *text;
    } else {
      answer["error"] = std::string(text.status().message());
    }
    std::cout << answer.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)
              << '\n'
              << std::flush;
  }
  return 0;
}
