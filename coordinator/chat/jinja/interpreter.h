// Walks a syntax tree. Internal to this folder; template.h is the entrance.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/syntax_tree.h"

namespace weft::jinja {

// Variables of one stretch of the template. A macro keeps the scope that it was defined in.
struct Scope {
  std::shared_ptr<Scope> parent;  // its depth is that of the blocks in the text
  std::vector<std::pair<std::string_view, Value>> variables;  // names stand in the tree

  const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

struct Macro : MacroStore {
  const MacroDefinition* definition = nullptr;
  std::shared_ptr<Scope> scope;
};

class Interpreter {
 public:
  // `runtime`, and the names of `globals`, outlive it.
  Interpreter(Runtime& runtime, std::vector<std::pair<std::string_view, Value>> globals);

  // The text that `block` prints. Errors: "line 3: ...".
  absl::StatusOr<std::string> Run(const Block& block);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  using FlowResult = absl::StatusOr<Flow>;
  using Result = absl::StatusOr<Value>;

  // Redirects the output until its end.
  class Capture;
  // A scope inside the current (or a given) one until its end.
  class InnerScope;

  // --- statements (statement_executor.cc)
  FlowResult Execute(const Block& block);
  FlowResult Execute(const Statement& statement);
  // What the body writes goes to `text`, if it comes to its end.
  FlowResult CaptureBody(const Block& body, Value& text);
  FlowResult ExecuteNode(const PlainText& node);
  FlowResult ExecuteNode(const Print& node);
  FlowResult ExecuteNode(const If& node);
  FlowResult ExecuteNode(const For& node);
  FlowResult ExecuteNode(const Set& node);
  FlowResult ExecuteNode(const SetBlock& node);
  FlowResult ExecuteNode(const With& node);
  FlowResult ExecuteNode(const MacroDefinition& node);
  FlowResult ExecuteNode(const CallBlock& node);
  FlowResult ExecuteNode(const FilterBlock& node);
  FlowResult ExecuteNode(const Generation& node);
  FlowResult ExecuteNode(const LoopControl& node);
  absl::Status Assign(const Target& target, const Value& value);
  absl::StatusOr<std::vector<Value>> LoopItems(const For& node);
  absl::StatusOr<bool> RunLoop(const For& node, std::vector<Value> items);
  absl::Status Emit(std::string_view text);
  Value DefineMacro(const MacroDefinition& definition);

  // --- expressions (expression_evaluator.cc)
  Result Evaluate(const Expression& expression);
  Result EvaluateNode(const TextLiteral& node);
  Result EvaluateNode(const Constant& node);
  Result EvaluateNode(const Name& node);
  Result EvaluateNode(const ListLiteral& node);
  Result EvaluateNode(const DictLiteral& node);
  Result EvaluateNode(const Unary& node);
  Result EvaluateNode(const Binary& node);
  Result EvaluateNode(const Logical& node);
  Result EvaluateNode(const Concatenation& node);
  Result EvaluateNode(const Comparison& node);
  Result EvaluateNode(const Conditional& node);
  Result EvaluateNode(const Attribute& node);
  Result EvaluateNode(const Subscript& node);
  Result EvaluateNode(const Slice& node);
  Result EvaluateNode(const Call& node);
  Result EvaluateNode(const Filter& node);
  Result EvaluateNode(const Test& node);
  absl::StatusOr<bool> Holds(Relation relation, const Value& left, const Value& right);
  absl::StatusOr<Arguments> EvaluateArguments(const CallArguments& arguments);
  // The value of a filter chain on `input`.
  Result EvaluateFilterChain(const Expression& chain, Value input);
  Result EvaluateCall(const Call& node, const Value* caller);
  Result CallValue(const Value& callee, Arguments arguments);
  Result CallMacro(const Macro& macro, Arguments arguments);
  absl::Status BindParameters(const MacroDefinition& definition, Arguments* arguments);
  absl::Status BindRest(const MacroDefinition& definition, size_t bound, Arguments* arguments);

  // One level deeper; false, with the runtime exhausted, if that is too deep.
  bool Enter();
  void Leave() { --depth_; }
  // `error` with the line, which only the first to see it adds.
  absl::Status Locate(int line, const absl::Status& error);

  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
  std::string* out_ = nullptr;
  Value filter_input_;  // of the filter block that is about to be evaluated
  int depth_ = 0;
  int loops_ = 0;
  bool located_ = false;
};

class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.out_, &text_)) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { End(); }

  // Ends it and returns what was printed.
  std::string Take() {
    End();
    return std::move(text_);
  }

 private:
  void End() {
    if (interpreter_.out_ != &text_) return;
    interpreter_.out_ = outer_;
    interpreter_.runtime_.GiveBack(static_cast<int64_t>(text_.size()));
  }

  Interpreter& interpreter_;
  std::string text_;
  std::string* outer_;
};

class Interpreter::InnerScope {
 public:
  explicit InnerScope(Interpreter& interpreter) : InnerScope(interpreter, interpreter.scope_) {}
  InnerScope(Interpreter& interpreter, std::shared_ptr<Scope> parent) : interpreter_(interpreter) {
    auto inner = std::make_shared<Scope>();
    inner->parent = std::move(parent);
    outer_ = std::exchange(interpreter.scope_, std::move(inner));
  }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;
  ~InnerScope() { interpreter_.scope_ = std::move(outer_); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

}  // namespace weft::jinja
