#include "tests/unit/coordinator/chat/jinja/template_check.h"

#include <cstdio>
#include <cstdlib>

#include "common/base/utf8.h"
#include "coordinator/chat/jinja/template.h"

namespace weft {
namespace {

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "call00001", "type": "function",
      "function": {"name": "f", "arguments": {"x": [1, 2.5, null, true, {}]}}}]},
    {"role": "tool", "tool_call_id": "call00001", "content": "<think> 5 </think>"}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d\nd",
    "parameters": {"type": "object", "properties": {"x": {"type": "array"}}, "required": ["x"]}}}],
  "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})";

void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "CheckTemplate: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace

void CheckTemplate(std::string_view source) {
  jinja::Limits limits;
  limits.steps = 300'000;
  limits.memory_bytes = int64_t{4} << 20;
  limits.output_bytes = int64_t{1} << 20;
  limits.template_bytes = int64_t{1} << 16;
  limits.range_length = 10'000;
  const auto parsed = jinja::Template::Parse(source, limits);
  if (!parsed.ok()) {
    Require(parsed.status().code() == absl::StatusCode::kInvalidArgument, "the code of an error");
    Require(!parsed.status().message().empty(), "an error says nothing");
    return;
  }
  static const auto variables = nlohmann::ordered_json::parse(kVariables);
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mday = 26;
  const auto text = parsed->Render(variables, now);
  if (text.ok()) {
    Require(IsUtf8(*text), "the text is not UTF-8");
    Require(static_cast<int64_t>(text->size()) <= limits.output_bytes, "the text is too long");
  } else {
    Require(text.status().code() == absl::StatusCode::kInvalidArgument, "the code of an error");
    Require(text.status().message().substr(0, 5) == "line ", "an error lacks its line");
  }
  // The same again: a rendering leaves nothing behind.
  const auto again = parsed->Render(variables, now);
  Require(again.ok() == text.ok() && (!text.ok() || *again == *text), "a second time differs");
}

}  // namespace weft
