// Operators; what they stand between is in operand_parser.cc.
#include "coordinator/chat/jinja/expression_parser.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft::jinja {
namespace {

std::optional<Relation> RelationOf(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return Relation::kEqual;
  if (token.text == "!=") return Relation::kNotEqual;
  if (token.text == "<") return Relation::kLess;
  if (token.text == "<=") return Relation::kLessEqual;
  if (token.text == ">") return Relation::kGreater;
  if (token.text == ">=") return Relation::kGreaterEqual;
  return std::nullopt;
}

std::optional<Arithmetic> ProductOf(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "*") return Arithmetic::kMultiply;
  if (token.text == "/") return Arithmetic::kDivide;
  if (token.text == "//") return Arithmetic::kFloorDivide;
  if (token.text == "%") return Arithmetic::kModulo;
  return std::nullopt;
}

}  // namespace

absl::Status ExpressionParser::TooDeep(int line) const {
  return ErrorAt(
      line, absl::StrCat("more than ", limits_.syntax_depth, " expressions inside each other"));
}

ExpressionParser::Result ExpressionParser::Nested(Step step) {
  if (depth_ >= limits_.syntax_depth) return TooDeep(tokens_.line());
  ++depth_;
  Result result = (this->*step)();
  --depth_;
  return result;
}

ExpressionParser::Result ExpressionParser::ParseExpression(bool conditional) {
  return Nested(conditional ? &ExpressionParser::ParseConditional : &ExpressionParser::ParseOr);
}

ExpressionParser::Result ExpressionParser::ParseConditional() {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(ExpressionPtr value, ParseOr());
  while (tokens_.AcceptName("if")) {
    Conditional node;
    ASSIGN_OR_RETURN(node.test, ParseOr());
    if (tokens_.AcceptName("else")) {
      ASSIGN_OR_RETURN(node.otherwise, ParseExpression());
    }
    const int depth =
        std::max({node.test->depth, value->depth, node.otherwise ? node.otherwise->depth : 0});
    node.then = std::move(value);
    ASSIGN_OR_RETURN(value, Make(line, depth, std::move(node)));
  }
  return value;
}

ExpressionParser::Result ExpressionParser::ParseOr() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseAnd());
  while (tokens_.AtName("or")) {
    const int line = tokens_.line();
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseAnd());
    const int depth = std::max(left->depth, right->depth);
    ASSIGN_OR_RETURN(left, Make(line, depth, Logical{false, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseAnd() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseNot());
  while (tokens_.AtName("and")) {
    const int line = tokens_.line();
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseNot());
    const int depth = std::max(left->depth, right->depth);
    ASSIGN_OR_RETURN(left, Make(line, depth, Logical{true, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseNot() {
  const int line = tokens_.line();
  if (!tokens_.AcceptName("not")) return ParseComparison();
  ASSIGN_OR_RETURN(ExpressionPtr operand, Nested(&ExpressionParser::ParseNot));
  const int depth = operand->depth;
  return Make(line, depth, Unary{UnaryOperator::kNot, std::move(operand)});
}

ExpressionParser::Result ExpressionParser::ParseComparison() {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseSum());
  Comparison node;
  int depth = first->depth;
  while (true) {
    std::optional<Relation> relation = RelationOf(tokens_.current());
    if (tokens_.AtName("in")) {
      relation = Relation::kIn;
    } else if (tokens_.AtName("not") && tokens_.next().kind == TokenKind::kName &&
               tokens_.next().text == "in") {
      tokens_.Advance();
      relation = Relation::kNotIn;
    }
    if (!relation.has_value()) break;
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr operand, ParseSum());
    depth = std::max(depth, operand->depth);
    node.rest.emplace_back(*relation, std::move(operand));
  }
  if (node.rest.empty()) return first;
  node.first = std::move(first);
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseSum() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseConcatenation());
  while (tokens_.AtOperator("+") || tokens_.AtOperator("-")) {
    const int line = tokens_.line();
    const Arithmetic operation = tokens_.AtOperator("+") ? Arithmetic::kAdd : Arithmetic::kSubtract;
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseConcatenation());
    const int depth = std::max(left->depth, right->depth);
    ASSIGN_OR_RETURN(left, Make(line, depth, Binary{operation, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseConcatenation() {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseProduct());
  if (!tokens_.AtOperator("~")) return first;
  int depth = first->depth;
  Concatenation node;
  node.parts.push_back(std::move(first));
  while (tokens_.AcceptOperator("~")) {
    ASSIGN_OR_RETURN(ExpressionPtr part, ParseProduct());
    depth = std::max(depth, part->depth);
    node.parts.push_back(std::move(part));
  }
  return Make(line, depth, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseProduct() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParsePower());
  while (const std::optional<Arithmetic> operation = ProductOf(tokens_.current())) {
    const int line = tokens_.line();
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParsePower());
    const int depth = std::max(left->depth, right->depth);
    ASSIGN_OR_RETURN(left,
                     Make(line, depth, Binary{*operation, std::move(left), std::move(right)}));
  }
  return left;
}

// Groups to the left, unlike in Python.
ExpressionParser::Result ExpressionParser::ParsePower() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseUnary(true));
  while (tokens_.AtOperator("**")) {
    const int line = tokens_.line();
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseUnary(true));
    const int depth = std::max(left->depth, right->depth);
    ASSIGN_OR_RETURN(
        left, Make(line, depth, Binary{Arithmetic::kPower, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseSigned() { return ParseUnary(false); }

// A sign binds less than what follows an operand, but more than a filter.
ExpressionParser::Result ExpressionParser::ParseUnary(bool with_filters) {
  const int line = tokens_.line();
  ExpressionPtr value;
  if (tokens_.AtOperator("-") || tokens_.AtOperator("+")) {
    const UnaryOperator operation =
        tokens_.AtOperator("-") ? UnaryOperator::kMinus : UnaryOperator::kPlus;
    tokens_.Advance();
    ASSIGN_OR_RETURN(ExpressionPtr operand, Nested(&ExpressionParser::ParseSigned));
    const int depth = operand->depth;
    ASSIGN_OR_RETURN(value, Make(line, depth, Unary{operation, std::move(operand)}));
  } else {
    ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  ASSIGN_OR_RETURN(value, ParsePostfix(std::move(value)));
  if (!with_filters) return value;
  return ParseFilters(std::move(value));
}

}  // namespace weft::jinja
