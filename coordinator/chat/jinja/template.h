// A Jinja template as GGUF files carry it in tokenizer.chat_template, with the settings of Hugging
// Face's transformers: trim_blocks, lstrip_blocks, loop controls, its tojson, an immutable
// sandbox. docs/chat-templates.md lists what is known.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/limits.h"
#include "nlohmann/json.hpp"

namespace weft::jinja {

class Template {
 public:
  // Errors: INVALID_ARGUMENT, "line 3: ..." with what is wrong in it or which limit it passes.
  static absl::StatusOr<Template> Parse(std::string_view source, const Limits& limits = {});

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // Renders it with the members of `variables`, an object, as variables; `now` is the civil time
  // that strftime_now() shows. Nothing else of the machine can be seen. May be called from several
  // threads at once.
  // Errors: INVALID_ARGUMENT, "line 3: ..."; what raise_exception() says comes as
  // "line 3: the template refuses: ...".
  absl::StatusOr<std::string> Render(const nlohmann::ordered_json& variables,
                                     const std::tm& now) const;

 private:
  struct Tree;
  Template(const Limits& limits, std::unique_ptr<const Tree> tree);

  Limits limits_;
  std::unique_ptr<const Tree> tree_;
};

}  // namespace weft::jinja
