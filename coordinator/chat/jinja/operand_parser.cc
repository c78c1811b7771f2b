// Literals, names, brackets, and what follows a value: attributes, calls, filters, tests.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/expression_parser.h"

namespace weft::jinja {
namespace {

int DepthOf(const ExpressionPtr& expression) { return expression ? expression->depth : 0; }

int DepthOf(const CallArguments& arguments) {
  int depth = std::max(DepthOf(arguments.star), DepthOf(arguments.double_star));
  for (const auto& value : arguments.positional) depth = std::max(depth, value->depth);
  for (const auto& [name, value] : arguments.keywords) depth = std::max(depth, value->depth);
  return depth;
}

int DepthOf(const std::vector<ExpressionPtr>& expressions) {
  int depth = 0;
  for (const auto& expression : expressions) depth = std::max(depth, expression->depth);
  return depth;
}

}  // namespace

bool ExpressionParser::AtTupleEnd() const {
  return tokens_.At(TokenKind::kVariableEnd) || tokens_.At(TokenKind::kBlockEnd) ||
         tokens_.AtOperator(")");
}

ExpressionParser::Result ExpressionParser::ParseTuple(bool conditional) {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseExpression(conditional));
  if (!tokens_.AtOperator(",")) return first;
  ListLiteral node{true, {}};
  node.items.push_back(std::move(first));
  while (tokens_.AcceptOperator(",")) {
    if (AtTupleEnd()) break;
    ASSIGN_OR_RETURN(ExpressionPtr item, ParseExpression(conditional));
    node.items.push_back(std::move(item));
  }
  const int depth = DepthOf(node.items);
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParsePrimary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return ParseNumber();
  if (token.kind == TokenKind::kString) return ParseString();
  if (tokens_.AtOperator("(")) return ParseParentheses();
  if (tokens_.AtOperator("[")) return ParseList();
  if (tokens_.AtOperator("{")) return ParseDict();
  if (token.kind != TokenKind::kName) return tokens_.Unexpected("an expression");
  const std::string name = token.text;
  tokens_.Advance();
  if (name == "true" || name == "True") return Make(line, 0, Constant{Value::Bool(true)});
  if (name == "false" || name == "False") return Make(line, 0, Constant{Value::Bool(false)});
  if (name == "none" || name == "None") return Make(line, 0, Constant{Value::None()});
  names_.push_back(name);
  return Make(line, 0, Name{name});
}

ExpressionParser::Result ExpressionParser::ParseNumber() {
  const Token& token = tokens_.current();
  Value value;
  if (token.kind == TokenKind::kFloat) {
    const auto number = ParseFloat(token.text);
    if (!number.has_value()) return tokens_.Unexpected("a number");
    value = Value::Float(*number);
  } else {
    const auto number = ParseInteger(token.text, 0);
    if (!number.has_value()) return tokens_.Unexpected("an integer of 64 bits");
    value = Value::Integer(*number);
  }
  const int line = token.line;
  tokens_.Advance();
  return Make(line, 0, Constant{value});
}

ExpressionParser::Result ExpressionParser::ParseString() {
  const int line = tokens_.line();
  TextLiteral node;
  while (tokens_.At(TokenKind::kString)) {
    node.text += tokens_.current().text;
    tokens_.Advance();
  }
  return Make(line, 0, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseParentheses() {
  const int line = tokens_.line();
  tokens_.Advance();
  if (tokens_.AcceptOperator(")")) return Make(line, 0, ListLiteral{true, {}});
  ASSIGN_OR_RETURN(ExpressionPtr value, ParseTuple());
  RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
  return value;
}

ExpressionParser::Result ExpressionParser::ParseList() {
  const int line = tokens_.line();
  tokens_.Advance();
  ListLiteral node;
  while (!tokens_.AtOperator("]")) {
    if (!node.items.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    if (tokens_.AtOperator("]")) break;
    ASSIGN_OR_RETURN(ExpressionPtr item, ParseExpression());
    node.items.push_back(std::move(item));
  }
  tokens_.Advance();
  const int depth = DepthOf(node.items);
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseDict() {
  const int line = tokens_.line();
  tokens_.Advance();
  DictLiteral node;
  int depth = 0;
  while (!tokens_.AtOperator("}")) {
    if (!node.entries.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    if (tokens_.AtOperator("}")) break;
    ASSIGN_OR_RETURN(ExpressionPtr key, ParseExpression());
    RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
    depth = std::max({depth, key->depth, value->depth});
    node.entries.emplace_back(std::move(key), std::move(value));
  }
  tokens_.Advance();
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParsePostfix(ExpressionPtr value) {
  while (true) {
    const int line = tokens_.line();
    if (tokens_.AtOperator("(")) {
      ASSIGN_OR_RETURN(value, ParseCall(std::move(value)));
    } else if (tokens_.AcceptOperator(".")) {
      const int depth = value->depth;
      if (tokens_.At(TokenKind::kInteger)) {
        ASSIGN_OR_RETURN(ExpressionPtr index, ParseNumber());
        ASSIGN_OR_RETURN(value, Make(line, depth, Subscript{std::move(value), std::move(index)}));
        continue;
      }
      ASSIGN_OR_RETURN(std::string name, tokens_.ExpectAnyName());
      ASSIGN_OR_RETURN(value, Make(line, depth, Attribute{std::move(value), std::move(name)}));
    } else if (tokens_.AtOperator("[")) {
      ASSIGN_OR_RETURN(value, ParseBrackets(std::move(value)));
    } else {
      return value;
    }
  }
}

// [index] or [start:stop:step].
ExpressionParser::Result ExpressionParser::ParseBrackets(ExpressionPtr object) {
  const int line = tokens_.line();
  tokens_.Advance();
  ExpressionPtr start;
  if (!tokens_.AtOperator(":")) {
    ASSIGN_OR_RETURN(start, ParseTuple());
    if (tokens_.AcceptOperator("]")) {
      const int depth = std::max(object->depth, start->depth);
      return Make(line, depth, Subscript{std::move(object), std::move(start)});
    }
  }
  RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
  Slice node;
  if (!tokens_.AtOperator(":") && !tokens_.AtOperator("]")) {
    ASSIGN_OR_RETURN(node.stop, ParseExpression());
  }
  if (tokens_.AcceptOperator(":") && !tokens_.AtOperator("]")) {
    ASSIGN_OR_RETURN(node.step, ParseExpression());
  }
  RETURN_IF_ERROR(tokens_.ExpectOperator("]"));
  const int depth =
      std::max({object->depth, DepthOf(start), DepthOf(node.stop), DepthOf(node.step)});
  node.object = std::move(object);
  node.start = std::move(start);
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseCall(ExpressionPtr callee) {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(CallArguments arguments, ParseArguments());
  const int depth = std::max(callee->depth, DepthOf(arguments));
  return Make(line, depth, Call{std::move(callee), std::move(arguments)});
}

absl::StatusOr<CallArguments> ExpressionParser::ParseArguments() {
  RETURN_IF_ERROR(tokens_.ExpectOperator("("));
  CallArguments arguments;
  bool first = true;
  while (!tokens_.AtOperator(")")) {
    if (!first) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    first = false;
    if (tokens_.AtOperator(")")) break;
    RETURN_IF_ERROR(ParseArgument(&arguments));
  }
  tokens_.Advance();
  return arguments;
}

absl::Status ExpressionParser::ParseArgument(CallArguments* arguments) {
  if (arguments->double_star != nullptr) return tokens_.Unexpected("no argument behind '**'");
  if (tokens_.AcceptOperator("**")) {
    ASSIGN_OR_RETURN(arguments->double_star, ParseExpression());
    return absl::OkStatus();
  }
  if (tokens_.AtOperator("*")) {
    if (arguments->star != nullptr) return tokens_.Unexpected("one '*' only");
    tokens_.Advance();
    ASSIGN_OR_RETURN(arguments->star, ParseExpression());
    return absl::OkStatus();
  }
  const bool is_named = tokens_.At(TokenKind::kName) &&
                        tokens_.next().kind == TokenKind::kOperator && tokens_.next().text == "=";
  if (!is_named) {
    if (!arguments->keywords.empty() || arguments->star != nullptr) {
      return tokens_.Unexpected("a named argument");
    }
    ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
    arguments->positional.push_back(std::move(value));
    return absl::OkStatus();
  }
  std::string name = tokens_.current().text;
  for (const auto& [other, value] : arguments->keywords) {
    if (other == name) return tokens_.Unexpected("each name once");
  }
  tokens_.Advance();
  tokens_.Advance();
  ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
  arguments->keywords.emplace_back(std::move(name), std::move(value));
  return absl::OkStatus();
}

ExpressionParser::Result ExpressionParser::ParseFilters(ExpressionPtr value) {
  while (true) {
    if (tokens_.AcceptOperator("|")) {
      ASSIGN_OR_RETURN(value, ParseFilter(std::move(value)));
    } else if (tokens_.AcceptName("is")) {
      ASSIGN_OR_RETURN(value, ParseTest(std::move(value)));
    } else if (tokens_.AtOperator("(")) {
      ASSIGN_OR_RETURN(value, ParseCall(std::move(value)));
    } else {
      return value;
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseFilterChain() {
  ASSIGN_OR_RETURN(ExpressionPtr value, ParseFilter(nullptr));
  while (tokens_.AcceptOperator("|")) {
    ASSIGN_OR_RETURN(value, ParseFilter(std::move(value)));
  }
  return value;
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName() {
  ASSIGN_OR_RETURN(std::string name, tokens_.ExpectAnyName());
  while (tokens_.AcceptOperator(".")) {
    ASSIGN_OR_RETURN(const std::string part, tokens_.ExpectAnyName());
    absl::StrAppend(&name, ".", part);
  }
  return name;
}

ExpressionParser::Result ExpressionParser::ParseFilter(ExpressionPtr input) {
  const int line = tokens_.line();
  Filter node;
  ASSIGN_OR_RETURN(node.name, ParseDottedName());
  if (tokens_.AtOperator("(")) {
    ASSIGN_OR_RETURN(node.arguments, ParseArguments());
  }
  const int depth = std::max(DepthOf(input), DepthOf(node.arguments));
  node.input = std::move(input);
  return Make(line, depth, std::move(node));
}

// Behind "is". One argument needs no parentheses.
ExpressionParser::Result ExpressionParser::ParseTest(ExpressionPtr input) {
  const int line = tokens_.line();
  const bool negated = tokens_.AcceptName("not");
  Test node;
  ASSIGN_OR_RETURN(node.name, ParseDottedName());
  const bool at_value = tokens_.At(TokenKind::kName) || tokens_.At(TokenKind::kString) ||
                        tokens_.At(TokenKind::kInteger) || tokens_.At(TokenKind::kFloat) ||
                        tokens_.AtOperator("[") || tokens_.AtOperator("{");
  const bool at_word = tokens_.AtName("else") || tokens_.AtName("or") || tokens_.AtName("and");
  if (tokens_.AtOperator("(")) {
    ASSIGN_OR_RETURN(node.arguments, ParseArguments());
  } else if (at_value && !at_word) {
    if (tokens_.AtName("is")) return tokens_.Unexpected("no second test");
    ASSIGN_OR_RETURN(ExpressionPtr argument, Nested(&ExpressionParser::ParsePrimary));
    ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    node.arguments.positional.push_back(std::move(argument));
  }
  const int depth = std::max(DepthOf(input), DepthOf(node.arguments));
  node.input = std::move(input);
  ASSIGN_OR_RETURN(ExpressionPtr test, Make(line, depth, std::move(node)));
  if (!negated) return test;
  return Make(line, depth + 1, Unary{UnaryOperator::kNot, std::move(test)});
}

}  // namespace weft::jinja
