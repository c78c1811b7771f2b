#include "coordinator/chat/jinja/template.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/interpreter.h"
#include "coordinator/chat/jinja/json_text.h"
#include "coordinator/chat/jinja/parser.h"

namespace weft::jinja {

struct Template::Tree {
  Block block;
};

Template::Template(const Limits& limits, std::unique_ptr<const Tree> tree)
    : limits_(limits), tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

absl::StatusOr<Template> Template::Parse(std::string_view source, const Limits& limits) {
  ASSIGN_OR_RETURN(Block block, jinja::Parse(source, limits));
  return Template(limits, std::make_unique<const Tree>(Tree{std::move(block)}));
}

absl::StatusOr<std::string> Template::Render(const nlohmann::ordered_json& variables,
                                             const std::tm& now) const {
  if (!variables.is_object()) return Error("the variables of a template are an object");
  Runtime runtime(limits_, now);
  ASSIGN_OR_RETURN(const Value values, FromJson(runtime, variables));
  std::vector<std::pair<std::string_view, Value>> globals;
  for (const auto& [name, value] : values.AsMapping().entries) {
    globals.emplace_back(name.AsString(), value);
  }
  return Interpreter(runtime, std::move(globals)).Run(tree_->block);
}

}  // namespace weft::jinja
