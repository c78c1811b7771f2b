// Parses expressions, by the precedence that Jinja gives its operators.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/limits.h"
#include "coordinator/chat/jinja/syntax_tree.h"
#include "coordinator/chat/jinja/token_stream.h"

namespace weft::jinja {

class ExpressionParser {
 public:
  // Both outlive the parser.
  ExpressionParser(TokenStream& tokens, const Limits& limits) : tokens_(tokens), limits_(limits) {}

  using Result = absl::StatusOr<ExpressionPtr>;

  // One expression; without `conditional`, an `if` behind it is not part of it.
  Result ParseExpression(bool conditional = true);
  // The same, or several with commas between them as a tuple.
  Result ParseTuple(bool conditional = true);
  // "name(arguments) | ..." as an expression whose innermost filter has no input.
  Result ParseFilterChain();

  // Every name used as a variable since the start of the parse, in order.
  const std::vector<std::string>& names() const { return names_; }

 private:
  using Step = Result (ExpressionParser::*)();

  // One level deeper, as long as that is allowed.
  Result Nested(Step step);
  // A node on top of trees of `depth_below`, unless the tree would be too deep.
  template <typename Node>
  Result Make(int line, int depth_below, Node node) const {
    if (depth_below >= limits_.syntax_depth) return TooDeep(line);
    auto expression = std::make_unique<Expression>();
    expression->node = std::move(node);
    expression->line = line;
    expression->depth = depth_below + 1;
    return expression;
  }
  absl::Status TooDeep(int line) const;

  Result ParseConditional();
  Result ParseOr();
  Result ParseAnd();
  Result ParseNot();
  Result ParseComparison();
  Result ParseSum();
  Result ParseConcatenation();
  Result ParseProduct();
  Result ParsePower();
  Result ParseUnary(bool with_filters);
  Result ParseSigned();
  Result ParsePrimary();
  Result ParseNumber();
  Result ParseString();
  Result ParseParentheses();
  Result ParseList();
  Result ParseDict();
  Result ParsePostfix(ExpressionPtr value);
  Result ParseFilters(ExpressionPtr value);
  Result ParseBrackets(ExpressionPtr object);
  Result ParseCall(ExpressionPtr callee);
  Result ParseFilter(ExpressionPtr input);
  Result ParseTest(ExpressionPtr input);
  absl::StatusOr<CallArguments> ParseArguments();
  absl::Status ParseArgument(CallArguments* arguments);
  absl::StatusOr<std::string> ParseDottedName();
  bool AtTupleEnd() const;

  TokenStream& tokens_;
  const Limits& limits_;
  int depth_ = 0;
  std::vector<std::string> names_;
};

}  // namespace weft::jinja
