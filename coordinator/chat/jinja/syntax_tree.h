// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// --- expressions; a pointer may be null only where it says so --------------------------------

struct TextLiteral {
  std::string text;
};
struct Constant {
  Value value;  // None, a truth value or a number
};
struct Name {
  std::string name;
};
struct ListLiteral {
  bool is_tuple = false;
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
enum class UnaryOperator { kNot, kMinus, kPlus };
struct Unary {
  UnaryOperator operation = UnaryOperator::kNot;
  ExpressionPtr operand;
};
struct Binary {
  Arithmetic operation = Arithmetic::kAdd;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and = false;
  ExpressionPtr left, right;
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class Relation { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<Relation, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr test, then;
  ExpressionPtr otherwise;  // null: undefined
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start, stop, step;  // null: not given
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr star;         // *list; may be null
  ExpressionPtr double_star;  // **dict; may be null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr input;  // null: the text of the block that the filter ends
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  CallArguments arguments;
};

struct Expression {
  std::variant<TextLiteral, Constant, Name, ListLiteral, DictLiteral, Unary, Binary, Logical,
               Concatenation, Comparison, Conditional, Attribute, Subscript, Slice, Call, Filter,
               Test>
      node;
  int line = 1;
  int depth = 1;  // of the tree below, itself included
};

// --- statements --------------------------------------------------------------------------------

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

// What `for` and `set` assign to: a name, name.attribute, or several of them.
struct Target {
  std::string name;       // empty: several
  std::string attribute;  // empty: the name itself
  std::vector<Target> elements;
};

struct PlainText {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExpressionPtr items;
  ExpressionPtr filter;  // null: all
  Block body;
  Block otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // null: none
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Block body;
};
struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: none
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  // Whether the body names them, and so takes them.
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct CallBlock {
  ExpressionPtr call;  // a Call
  MacroDefinition caller;
};
struct FilterBlock {
  ExpressionPtr filter;
  Block body;
};
// {% generation %}: training marks; prints its body.
struct Generation {
  Block body;
};
struct LoopControl {
  bool is_break = false;
};

struct Statement {
  std::variant<PlainText, Print, If, For, Set, SetBlock, With, MacroDefinition, CallBlock,
               FilterBlock, Generation, LoopControl>
      node;
  int line = 1;
};

}  // namespace weft::jinja
