#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/interpreter.h"
#include "coordinator/chat/jinja/lexer.h"
#include "coordinator/chat/jinja/python_text.h"

namespace weft::jinja {
namespace {

// What a macro takes beside its scope.
constexpr int64_t kMacroBytes = 512;

}  // namespace

const Value* Scope::Find(std::string_view name) const {
  for (const auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Scope::Set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(Runtime& runtime, std::vector<std::pair<std::string_view, Value>> globals)
    : runtime_(runtime), scope_(std::make_shared<Scope>()) {
  scope_->variables = std::move(globals);
}

absl::StatusOr<std::string> Interpreter::Run(const Block& block) {
  Capture output(*this);
  RETURN_IF_ERROR(Execute(block).status());
  return output.Take();
}

bool Interpreter::Enter() {
  ++depth_;
  if (depth_ <= runtime_.limits().run_depth) return runtime_.Charge(1);
  runtime_.Exhaust("expressions, statements and calls inside each other",
                   runtime_.limits().run_depth);
  return false;
}

absl::Status Interpreter::Locate(int line, const absl::Status& error) {
  if (located_) return error;
  located_ = true;
  return ErrorAt(line, StdView(error.message()));
}

Interpreter::FlowResult Interpreter::Execute(const Block& block) {
  for (const auto& statement : block) {
    ASSIGN_OR_RETURN(const Flow flow, Execute(*statement));
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::Execute(const Statement& statement) {
  FlowResult result = Flow::kNormal;
  if (Enter()) {
    result = std::visit([this](const auto& node) { return ExecuteNode(node); }, statement.node);
  }
  Leave();
  if (result.ok() && runtime_.exhausted()) result = runtime_.status();
  if (!result.ok()) return Locate(statement.line, result.status());
  return result;
}

absl::Status Interpreter::Emit(std::string_view text) {
  if (static_cast<int64_t>(out_->size() + text.size()) > runtime_.limits().output_bytes) {
    return runtime_.Exhaust("bytes of output", runtime_.limits().output_bytes);
  }
  runtime_.Take(static_cast<int64_t>(text.size()));
  out_->append(text);
  if (!runtime_.ChargeBytes(text.size())) return runtime_.status();
  return absl::OkStatus();
}

Interpreter::FlowResult Interpreter::ExecuteNode(const PlainText& node) {
  RETURN_IF_ERROR(Emit(node.text));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const Print& node) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*node.value));
  RETURN_IF_ERROR(value.Is(Kind::kString) ? Emit(value.AsString()) : Emit(ToText(runtime_, value)));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const If& node) {
  for (const auto& [test, body] : node.branches) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*test));
    if (Truth(value)) return Execute(body);
  }
  return Execute(node.otherwise);
}

absl::StatusOr<std::vector<Value>> Interpreter::LoopItems(const For& node) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*node.items));
  ASSIGN_OR_RETURN(std::vector<Value> items, Elements(runtime_, value));
  if (node.filter == nullptr) return items;
  std::vector<Value> kept;
  for (const Value& item : items) {
    InnerScope scope(*this);
    RETURN_IF_ERROR(Assign(node.target, item));
    ASSIGN_OR_RETURN(const Value keep, Evaluate(*node.filter));
    if (Truth(keep)) kept.push_back(item);
  }
  return kept;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const For& node) {
  ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(node));
  ASSIGN_OR_RETURN(const bool completed, RunLoop(node, std::move(items)));
  if (completed) return Flow::kNormal;
  InnerScope scope(*this);
  return Execute(node.otherwise);
}

// Whether any pass came to its end: in Jinja, `else` follows also where each was cut short by
// `break` or `continue`.
absl::StatusOr<bool> Interpreter::RunLoop(const For& node, std::vector<Value> items) {
  const auto loop = std::make_shared<LoopState>();
  loop->length = static_cast<int64_t>(items.size());
  loop->depth = loops_;
  loop->items = std::move(items);
  ++loops_;
  bool completed = false;
  FlowResult result = Flow::kNormal;
  for (size_t i = 0; i < loop->items.size(); ++i) {
    loop->index = static_cast<int64_t>(i);
    InnerScope scope(*this);
    const absl::Status assigned = Assign(node.target, loop->items[i]);
    scope_->Set("loop", Value(Value::Data(loop)));
    result = assigned.ok() ? Execute(node.body) : FlowResult(assigned);
    if (!result.ok() || *result == Flow::kBreak) break;
    completed = completed || *result == Flow::kNormal;
  }
  --loops_;
  loop->Release();
  RETURN_IF_ERROR(result.status());
  return completed;
}

absl::Status Interpreter::Assign(const Target& target, const Value& value) {
  if (target.name.empty()) {
    ASSIGN_OR_RETURN(const std::vector<Value> parts, Elements(runtime_, value));
    if (parts.size() != target.elements.size()) {
      return Error(absl::StrCat("cannot assign ", parts.size(), " values to ",
                                target.elements.size(), " variables"));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      RETURN_IF_ERROR(Assign(target.elements[i], parts[i]));
    }
    return absl::OkStatus();
  }
  if (target.attribute.empty()) {
    scope_->Set(target.name, value);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Value space, EvaluateNode(Name{target.name}));
  if (!space.Is(Kind::kNamespace)) {
    return MisuseError("only a namespace has attributes that can be set, not", space);
  }
  space.AsNamespace().Set(target.attribute, value);
  return absl::OkStatus();
}

Interpreter::FlowResult Interpreter::ExecuteNode(const Set& node) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*node.value));
  RETURN_IF_ERROR(Assign(node.target, value));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::CaptureBody(const Block& body, Value& text) {
  Capture capture(*this);
  InnerScope scope(*this);
  ASSIGN_OR_RETURN(const Flow flow, Execute(body));
  if (flow == Flow::kNormal) text = runtime_.String(capture.Take());
  return flow;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const SetBlock& node) {
  Value value;
  ASSIGN_OR_RETURN(const Flow flow, CaptureBody(node.body, value));
  if (flow != Flow::kNormal) return flow;
  if (node.filter != nullptr) {
    ASSIGN_OR_RETURN(value, EvaluateFilterChain(*node.filter, std::move(value)));
  }
  RETURN_IF_ERROR(Assign(node.target, value));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const FilterBlock& node) {
  Value value;
  ASSIGN_OR_RETURN(const Flow flow, CaptureBody(node.body, value));
  if (flow != Flow::kNormal) return flow;
  ASSIGN_OR_RETURN(value, EvaluateFilterChain(*node.filter, std::move(value)));
  RETURN_IF_ERROR(Emit(ToText(runtime_, value)));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const With& node) {
  std::vector<Value> values;
  for (const auto& [target, expression] : node.variables) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression));
    values.push_back(std::move(value));
  }
  InnerScope scope(*this);
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(Assign(node.variables[i].first, values[i]));
  }
  return Execute(node.body);
}

Value Interpreter::DefineMacro(const MacroDefinition& definition) {
  auto macro = std::make_unique<Macro>();
  macro->definition = &definition;
  macro->scope = scope_;
  Value value = runtime_.MacroFunction(definition.name, *macro);
  runtime_.Take(kMacroBytes);
  runtime_.Keep(std::move(macro));
  return value;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const MacroDefinition& node) {
  scope_->Set(node.name, DefineMacro(node));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const CallBlock& node) {
  const Value caller = DefineMacro(node.caller);
  ASSIGN_OR_RETURN(const Value value, EvaluateCall(std::get<Call>(node.call->node), &caller));
  RETURN_IF_ERROR(Emit(ToText(runtime_, value)));
  return Flow::kNormal;
}

Interpreter::FlowResult Interpreter::ExecuteNode(const Generation& node) {
  InnerScope scope(*this);
  return Execute(node.body);
}

Interpreter::FlowResult Interpreter::ExecuteNode(const LoopControl& node) {
  return node.is_break ? Flow::kBreak : Flow::kContinue;
}

}  // namespace weft::jinja
