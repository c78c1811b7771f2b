#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attributes.h"
#include "coordinator/chat/jinja/filters.h"
#include "coordinator/chat/jinja/global_functions.h"
#include "coordinator/chat/jinja/interpreter.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/tests.h"

namespace weft::jinja {

Interpreter::Result Interpreter::Evaluate(const Expression& expression) {
  Result result = Value();
  if (Enter()) {
    result = std::visit([this](const auto& node) { return EvaluateNode(node); }, expression.node);
  }
  Leave();
  if (result.ok() && runtime_.exhausted()) result = runtime_.status();
  if (!result.ok()) return Locate(expression.line, result.status());
  return result;
}

Interpreter::Result Interpreter::EvaluateNode(const TextLiteral& node) {
  return runtime_.String(node.text);
}

Interpreter::Result Interpreter::EvaluateNode(const Constant& node) { return node.value; }

Interpreter::Result Interpreter::EvaluateNode(const Name& node) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    if (const Value* value = scope->Find(node.name)) return *value;
  }
  if (auto function = GlobalFunction(runtime_, node.name)) return *std::move(function);
  return Value::Missing(absl::StrCat("there is no variable '", node.name, "'"));
}

Interpreter::Result Interpreter::EvaluateNode(const ListLiteral& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*item));
    items.push_back(std::move(value));
  }
  return node.is_tuple ? runtime_.Tuple(std::move(items)) : runtime_.List(std::move(items));
}

Interpreter::Result Interpreter::EvaluateNode(const DictLiteral& node) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_expression, value_expression] : node.entries) {
    ASSIGN_OR_RETURN(Value key, Evaluate(*key_expression));
    ASSIGN_OR_RETURN(Value value, Evaluate(*value_expression));
    RETURN_IF_ERROR(CheckKey(runtime_, key));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return runtime_.Dict(std::move(entries));
}

Interpreter::Result Interpreter::EvaluateNode(const Unary& node) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*node.operand));
  if (node.operation == UnaryOperator::kNot) return Value::Bool(!Truth(value));
  if (node.operation == UnaryOperator::kMinus) return Negate(value);
  if (!value.IsNumber()) return MisuseError("'+' cannot take", value);
  return value.IsIntegral() ? Value::Integer(value.AsInteger()) : value;
}

Interpreter::Result Interpreter::EvaluateNode(const Binary& node) {
  ASSIGN_OR_RETURN(const Value left, Evaluate(*node.left));
  ASSIGN_OR_RETURN(const Value right, Evaluate(*node.right));
  return Apply(runtime_, node.operation, left, right);
}

Interpreter::Result Interpreter::EvaluateNode(const Logical& node) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*node.left));
  if (Truth(left) != node.is_and) return left;
  return Evaluate(*node.right);
}

Interpreter::Result Interpreter::EvaluateNode(const Concatenation& node) {
  std::string text;
  for (const auto& part : node.parts) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*part));
    text += ToText(runtime_, value);
    if (!runtime_.HasRoom(static_cast<int64_t>(text.size()))) return runtime_.status();
  }
  return runtime_.String(std::move(text));
}

absl::StatusOr<bool> Interpreter::Holds(Relation relation, const Value& left, const Value& right) {
  switch (relation) {
    case Relation::kEqual:
      return Equal(runtime_, left, right);
    case Relation::kNotEqual:
      return !Equal(runtime_, left, right);
    case Relation::kIn:
      return Contains(runtime_, right, left);
    case Relation::kNotIn: {
      ASSIGN_OR_RETURN(const bool contains, Contains(runtime_, right, left));
      return !contains;
    }
    default:
      break;
  }
  ASSIGN_OR_RETURN(const std::partial_ordering order, Order(runtime_, left, right));
  switch (relation) {
    case Relation::kLess:
      return std::is_lt(order);
    case Relation::kLessEqual:
      return std::is_lteq(order);
    case Relation::kGreater:
      return std::is_gt(order);
    default:
      return std::is_gteq(order);
  }
}

Interpreter::Result Interpreter::EvaluateNode(const Comparison& node) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*node.first));
  for (const auto& [relation, expression] : node.rest) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*expression));
    ASSIGN_OR_RETURN(const bool holds, Holds(relation, left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Interpreter::Result Interpreter::EvaluateNode(const Conditional& node) {
  ASSIGN_OR_RETURN(const Value test, Evaluate(*node.test));
  if (Truth(test)) return Evaluate(*node.then);
  if (node.otherwise != nullptr) return Evaluate(*node.otherwise);
  return Value::Missing("an 'if' without 'else' did not hold");
}

Interpreter::Result Interpreter::EvaluateNode(const Attribute& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  return AttributeOf(runtime_, object, node.name);
}

Interpreter::Result Interpreter::EvaluateNode(const Subscript& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(const Value index, Evaluate(*node.index));
  return SubscriptOf(runtime_, object, index);
}

Interpreter::Result Interpreter::EvaluateNode(const Slice& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  SliceBounds bounds;
  if (node.start != nullptr) {
    ASSIGN_OR_RETURN(bounds.start, Evaluate(*node.start));
  }
  if (node.stop != nullptr) {
    ASSIGN_OR_RETURN(bounds.stop, Evaluate(*node.stop));
  }
  if (node.step != nullptr) {
    ASSIGN_OR_RETURN(bounds.step, Evaluate(*node.step));
  }
  return SliceOf(runtime_, object, bounds);
}

absl::StatusOr<Arguments> Interpreter::EvaluateArguments(const CallArguments& expressions) {
  Arguments arguments;
  for (const auto& expression : expressions.positional) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expression] : expressions.keywords) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression));
    arguments.keywords.emplace_back(name, std::move(value));
  }
  if (expressions.star != nullptr) {
    ASSIGN_OR_RETURN(const Value list, Evaluate(*expressions.star));
    ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(runtime_, list));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (expressions.double_star != nullptr) {
    ASSIGN_OR_RETURN(const Value dict, Evaluate(*expressions.double_star));
    if (!dict.Is(Kind::kMapping)) return MisuseError("'**' wants a dict, not", dict);
    for (const auto& [key, value] : dict.AsMapping().entries) {
      if (!key.Is(Kind::kString)) return MisuseError("the name of an argument cannot be", key);
      if (!runtime_.Charge(1)) return runtime_.status();
      arguments.keywords.emplace_back(key.AsString(), value);
    }
  }
  return arguments;
}

Interpreter::Result Interpreter::EvaluateNode(const Filter& node) {
  Value input;
  if (node.input == nullptr) {
    input = std::exchange(filter_input_, Value());
  } else {
    ASSIGN_OR_RETURN(input, Evaluate(*node.input));
  }
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node.arguments));
  return ApplyFilter(runtime_, node.name, input, arguments);
}

Interpreter::Result Interpreter::EvaluateFilterChain(const Expression& chain, Value input) {
  filter_input_ = std::move(input);
  return Evaluate(chain);
}

Interpreter::Result Interpreter::EvaluateNode(const Test& node) {
  ASSIGN_OR_RETURN(const Value input, Evaluate(*node.input));
  ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node.arguments));
  ASSIGN_OR_RETURN(const bool passes, ApplyTest(runtime_, node.name, input, arguments));
  return Value::Bool(passes);
}

Interpreter::Result Interpreter::EvaluateNode(const Call& node) {
  return EvaluateCall(node, nullptr);
}

Interpreter::Result Interpreter::EvaluateCall(const Call& node, const Value* caller) {
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*node.callee));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(node.arguments));
  if (caller != nullptr) arguments.keywords.emplace_back("caller", *caller);
  return CallValue(callee, std::move(arguments));
}

Interpreter::Result Interpreter::CallValue(const Value& callee, Arguments arguments) {
  if (!callee.Is(Kind::kCallable)) return MisuseError("cannot call", callee);
  const Callable& callable = callee.AsCallable();
  if (callable.macro != nullptr) return CallMacro(*callable.macro, std::move(arguments));
  return callable.native(runtime_, callable.self, arguments);
}

Interpreter::Result Interpreter::CallMacro(const Macro& macro, Arguments arguments) {
  InnerScope scope(*this, macro.scope);
  const int loops = std::exchange(loops_, 0);
  Capture capture(*this);
  RETURN_IF_ERROR(BindParameters(*macro.definition, &arguments));
  RETURN_IF_ERROR(Execute(macro.definition->body).status());
  loops_ = loops;
  return runtime_.String(capture.Take());
}

absl::Status Interpreter::BindParameters(const MacroDefinition& definition, Arguments* arguments) {
  const size_t given = std::min(definition.parameters.size(), arguments->positional.size());
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const Parameter& parameter = definition.parameters[i];
    const auto named =
        std::find_if(arguments->keywords.begin(), arguments->keywords.end(),
                     [&](const auto& keyword) { return keyword.first == parameter.name; });
    if (i < given) {
      if (named != arguments->keywords.end()) {
        return Error(
            absl::StrCat("macro '", definition.name, "' got '", parameter.name, "' twice"));
      }
      scope_->Set(parameter.name, arguments->positional[i]);
    } else if (named != arguments->keywords.end()) {
      scope_->Set(parameter.name, named->second);
      arguments->keywords.erase(named);
    } else if (parameter.fallback != nullptr) {
      ASSIGN_OR_RETURN(Value value, Evaluate(*parameter.fallback));
      scope_->Set(parameter.name, std::move(value));
    } else {
      scope_->Set(parameter.name, Value::Missing(absl::StrCat("the parameter '", parameter.name,
                                                              "' was not given")));
    }
  }
  return BindRest(definition, given, arguments);
}

absl::Status Interpreter::BindRest(const MacroDefinition& definition, size_t bound,
                                   Arguments* arguments) {
  if (definition.uses_caller) {
    const auto caller = std::find_if(arguments->keywords.begin(), arguments->keywords.end(),
                                     [](const auto& keyword) { return keyword.first == "caller"; });
    scope_->Set("caller", caller == arguments->keywords.end()
                              ? Value::Missing("the macro was not called by a call block")
                              : caller->second);
    if (caller != arguments->keywords.end()) arguments->keywords.erase(caller);
  }
  if (definition.uses_varargs) {
    scope_->Set("varargs",
                runtime_.Tuple({arguments->positional.begin() + static_cast<int64_t>(bound),
                                arguments->positional.end()}));
  } else if (arguments->positional.size() > bound) {
    return Error(absl::StrCat("macro '", definition.name, "' takes at most ",
                              definition.parameters.size(), " arguments"));
  }
  if (definition.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(arguments->keywords.size());
    for (const auto& [name, value] : arguments->keywords) {
      entries.emplace_back(runtime_.String(name), value);
    }
    scope_->Set("kwargs", runtime_.Dict(std::move(entries)));
  } else if (!arguments->keywords.empty()) {
    return Error(absl::StrCat("macro '", definition.name, "' has no parameter '",
                              arguments->keywords[0].first, "'"));
  }
  return absl::OkStatus();
}

}  // namespace weft::jinja
