#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "coordinator/chat/jinja/expression_parser.h"
#include "coordinator/chat/jinja/lexer.h"
#include "coordinator/chat/jinja/parser.h"
#include "coordinator/chat/jinja/token_stream.h"

namespace weft::jinja {
namespace {

using StatementPtr = std::unique_ptr<Statement>;
using StatementResult = absl::StatusOr<StatementPtr>;
using Words = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  StatementParser(TokenStream& tokens, const Limits& limits)
      : tokens_(tokens), limits_(limits), expressions_(tokens, limits) {}

  // Statements up to "{% word", of which it leaves the word as the current token; without words up
  // to the end of the template.
  absl::StatusOr<Block> ParseBlock(Words end_words) {
    if (depth_ >= limits_.syntax_depth) {
      return ErrorAt(tokens_.line(),
                     absl::StrCat("more than ", limits_.syntax_depth, " blocks inside each other"));
    }
    ++depth_;
    Block block;
    while (!tokens_.At(TokenKind::kEnd)) {
      if (tokens_.At(TokenKind::kBlockBegin) && IsOneOf(tokens_.next(), end_words)) {
        tokens_.Advance();
        --depth_;
        return block;
      }
      ASSIGN_OR_RETURN(StatementPtr statement, ParseStatement());
      block.push_back(std::move(statement));
    }
    --depth_;
    if (end_words.size() == 0) return block;
    return tokens_.Unexpected(
        absl::StrCat("'{% ", std::string(end_words.begin()[end_words.size() - 1]), "'"));
  }

 private:
  static bool IsOneOf(const Token& token, Words words) {
    return token.kind == TokenKind::kName &&
           std::find(words.begin(), words.end(), token.text) != words.end();
  }

  template <typename Node>
  static StatementPtr Make(int line, Node node) {
    auto statement = std::make_unique<Statement>();
    statement->line = line;
    statement->node = std::move(node);
    return statement;
  }

  StatementResult ParseStatement() {
    const int line = tokens_.line();
    if (tokens_.At(TokenKind::kText)) {
      StatementPtr text = Make(line, PlainText{tokens_.current().text});
      tokens_.Advance();
      return text;
    }
    if (tokens_.At(TokenKind::kVariableBegin)) {
      tokens_.Advance();
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.ParseTuple());
      RETURN_IF_ERROR(tokens_.Expect(TokenKind::kVariableEnd));
      return Make(line, Print{std::move(value)});
    }
    RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockBegin));
    ASSIGN_OR_RETURN(StatementPtr statement, ParseTag());
    RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockEnd));
    return statement;
  }

  // A statement from the word behind "{%" to the one before its last "%}".
  StatementResult ParseTag() {
    const int line = tokens_.line();
    const Token word = tokens_.current();
    if (word.kind != TokenKind::kName) return tokens_.Unexpected("the name of a statement");
    if (word.text == "if") return ParseIf();
    if (word.text == "break" || word.text == "continue") {
      if (loops_ == 0) return tokens_.Unexpected("it inside a loop only");
      tokens_.Advance();
      return Make(line, LoopControl{word.text == "break"});
    }
    tokens_.Advance();
    if (word.text == "for") return ParseFor(line);
    if (word.text == "set") return ParseSet(line);
    if (word.text == "macro") return ParseMacro(line);
    if (word.text == "call") return ParseCallBlock(line);
    if (word.text == "filter") return ParseFilterBlock(line);
    if (word.text == "with") return ParseWith(line);
    if (word.text == "generation") return ParseGeneration(line);
    return ErrorAt(line, absl::StrCat("'", word.text, "' is no statement known here"));
  }

  // "%}", statements, and the end word, which it leaves as the current token.
  absl::StatusOr<Block> ParseBody(Words end_words) {
    tokens_.AcceptOperator(":");
    RETURN_IF_ERROR(tokens_.Expect(TokenKind::kBlockEnd));
    return ParseBlock(end_words);
  }

  // The same with a single end word, behind which it stops.
  absl::StatusOr<Block> ParseWholeBody(std::string_view end_word) {
    ASSIGN_OR_RETURN(Block body, ParseBody({end_word}));
    tokens_.Advance();
    return body;
  }

  // The same, where `break` cannot reach a loop outside.
  absl::StatusOr<Block> ParseSeparateBody(std::string_view end_word) {
    const int loops = std::exchange(loops_, 0);
    absl::StatusOr<Block> body = ParseWholeBody(end_word);
    loops_ = loops;
    return body;
  }

  StatementResult ParseIf() {
    const int line = tokens_.line();
    If node;
    while (tokens_.AtName("if") || tokens_.AtName("elif")) {
      tokens_.Advance();
      ASSIGN_OR_RETURN(ExpressionPtr test, expressions_.ParseTuple(/*conditional=*/false));
      ASSIGN_OR_RETURN(Block body, ParseBody({"elif", "else", "endif"}));
      node.branches.emplace_back(std::move(test), std::move(body));
    }
    if (tokens_.AcceptName("else")) {
      ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endif"}));
    }
    RETURN_IF_ERROR(tokens_.ExpectName("endif"));
    return Make(line, std::move(node));
  }

  StatementResult ParseFor(int line) {
    For node;
    ASSIGN_OR_RETURN(node.target, ParseTarget(/*with_attribute=*/false));
    RETURN_IF_ERROR(tokens_.ExpectName("in"));
    ASSIGN_OR_RETURN(node.items, expressions_.ParseTuple(/*conditional=*/false));
    if (tokens_.AcceptName("if")) {
      ASSIGN_OR_RETURN(node.filter, expressions_.ParseExpression());
    }
    if (tokens_.AtName("recursive")) return tokens_.Unexpected("a loop that is not recursive");
    ++loops_;
    absl::StatusOr<Block> body = ParseBody({"else", "endfor"});
    --loops_;
    ASSIGN_OR_RETURN(node.body, std::move(body));
    if (tokens_.AcceptName("else")) {
      ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endfor"}));
    }
    RETURN_IF_ERROR(tokens_.ExpectName("endfor"));
    return Make(line, std::move(node));
  }

  // One name, name.attribute, or several with commas.
  absl::StatusOr<Target> ParseTarget(bool with_attribute) {
    Target targets;
    bool several = false;
    do {
      if (several && (tokens_.AtName("in") || tokens_.AtOperator("="))) break;
      ASSIGN_OR_RETURN(Target target, ParseOneTarget(with_attribute));
      targets.elements.push_back(std::move(target));
      several = tokens_.AtOperator(",");
    } while (tokens_.AcceptOperator(","));
    if (targets.elements.size() > 1 || several) return targets;
    return std::move(targets.elements[0]);
  }

  absl::StatusOr<Target> ParseOneTarget(bool with_attribute) {
    if (tokens_.AcceptOperator("(")) {
      if (depth_ >= limits_.syntax_depth) return tokens_.Unexpected("fewer parentheses");
      ++depth_;
      absl::StatusOr<Target> inner = ParseTarget(with_attribute);
      --depth_;
      if (inner.ok()) RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
      return inner;
    }
    Target target;
    ASSIGN_OR_RETURN(target.name, ParseVariableName());
    if (with_attribute && tokens_.AcceptOperator(".")) {
      ASSIGN_OR_RETURN(target.attribute, tokens_.ExpectAnyName());
    }
    return target;
  }

  absl::StatusOr<std::string> ParseVariableName() {
    for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
      if (tokens_.AtName(word)) return tokens_.Unexpected("a variable");
    }
    return tokens_.ExpectAnyName();
  }

  StatementResult ParseSet(int line) {
    ASSIGN_OR_RETURN(Target target, ParseTarget(/*with_attribute=*/true));
    if (tokens_.AcceptOperator("=")) {
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.ParseTuple());
      return Make(line, Set{std::move(target), std::move(value)});
    }
    SetBlock node;
    node.target = std::move(target);
    if (tokens_.AcceptOperator("|")) {
      ASSIGN_OR_RETURN(node.filter, expressions_.ParseFilterChain());
    }
    ASSIGN_OR_RETURN(node.body, ParseWholeBody("endset"));
    return Make(line, std::move(node));
  }

  StatementResult ParseWith(int line) {
    With node;
    while (!tokens_.At(TokenKind::kBlockEnd)) {
      if (!node.variables.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      ASSIGN_OR_RETURN(Target target, ParseOneTarget(/*with_attribute=*/false));
      RETURN_IF_ERROR(tokens_.ExpectOperator("="));
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.ParseExpression());
      node.variables.emplace_back(std::move(target), std::move(value));
    }
    ASSIGN_OR_RETURN(node.body, ParseWholeBody("endwith"));
    return Make(line, std::move(node));
  }

  // "(a, b=1)".
  absl::StatusOr<std::vector<Parameter>> ParseParameters() {
    std::vector<Parameter> parameters;
    RETURN_IF_ERROR(tokens_.ExpectOperator("("));
    while (!tokens_.AtOperator(")")) {
      if (!parameters.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      Parameter parameter;
      ASSIGN_OR_RETURN(parameter.name, ParseVariableName());
      if (tokens_.AcceptOperator("=")) {
        ASSIGN_OR_RETURN(parameter.fallback, expressions_.ParseExpression());
      } else if (!parameters.empty() && parameters.back().fallback != nullptr) {
        return tokens_.Unexpected("a default, as the parameter before has one");
      }
      parameters.push_back(std::move(parameter));
    }
    tokens_.Advance();
    return parameters;
  }

  absl::Status ParseMacroBody(std::string_view end_word, MacroDefinition* macro) {
    const size_t first_name = expressions_.names().size();
    ASSIGN_OR_RETURN(macro->body, ParseSeparateBody(end_word));
    const auto& names = expressions_.names();
    for (size_t i = first_name; i < names.size(); ++i) {
      macro->uses_caller |= names[i] == "caller";
      macro->uses_varargs |= names[i] == "varargs";
      macro->uses_kwargs |= names[i] == "kwargs";
    }
    for (const Parameter& parameter : macro->parameters) {
      if (parameter.name == "caller") macro->uses_caller = false;
      if (parameter.name == "varargs") macro->uses_varargs = false;
      if (parameter.name == "kwargs") macro->uses_kwargs = false;
    }
    return absl::OkStatus();
  }

  StatementResult ParseMacro(int line) {
    MacroDefinition node;
    ASSIGN_OR_RETURN(node.name, ParseVariableName());
    ASSIGN_OR_RETURN(node.parameters, ParseParameters());
    RETURN_IF_ERROR(ParseMacroBody("endmacro", &node));
    return Make(line, std::move(node));
  }

  StatementResult ParseCallBlock(int line) {
    CallBlock node;
    node.caller.name = "caller";
    if (tokens_.AtOperator("(")) {
      ASSIGN_OR_RETURN(node.caller.parameters, ParseParameters());
    }
    ASSIGN_OR_RETURN(node.call, expressions_.ParseExpression());
    if (!std::holds_alternative<Call>(node.call->node)) {
      return ErrorAt(line, "'call' wants the call of a macro");
    }
    RETURN_IF_ERROR(ParseMacroBody("endcall", &node.caller));
    return Make(line, std::move(node));
  }

  StatementResult ParseFilterBlock(int line) {
    FilterBlock node;
    ASSIGN_OR_RETURN(node.filter, expressions_.ParseFilterChain());
    ASSIGN_OR_RETURN(node.body, ParseWholeBody("endfilter"));
    return Make(line, std::move(node));
  }

  StatementResult ParseGeneration(int line) {
    Generation node;
    ASSIGN_OR_RETURN(node.body, ParseSeparateBody("endgeneration"));
    return Make(line, std::move(node));
  }

  TokenStream& tokens_;
  const Limits& limits_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;  // around the current statement, inside one macro
};

}  // namespace

absl::StatusOr<Block> Parse(std::string_view source, const Limits& limits) {
  if (static_cast<int64_t>(source.size()) > limits.template_bytes) {
    return Error(absl::StrCat("the template has ", source.size(), " bytes, more than ",
                              limits.template_bytes));
  }
  if (!IsUtf8(source)) return Error("the template is not UTF-8");
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  TokenStream stream(std::move(tokens));
  return StatementParser(stream, limits).ParseBlock({});
}

}  // namespace weft::jinja
