// The values of a running template, with the meaning they have in Python. They are immutable and
// shared, as in the "immutable sandbox" that Hugging Face renders templates in: there is no
// append() and no pop(). Only namespaces and loops have state; their owner ends the cycles that
// state can make (see Runtime and LoopState). Values are made by a Runtime, which counts them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace weft::jinja {

class Runtime;
struct Arguments;
struct Callable;
struct LoopState;
struct Macro;
struct Mapping;
struct Namespace;
struct Sequence;
struct Text;

// A name or attribute that does not exist: prints as nothing, is empty and false; most other uses
// are an error with this explanation.
struct Undefined {
  std::shared_ptr<const std::string> reason;  // may be null
};

// In the order of Value::Data.
enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kString,
  kSequence,
  kMapping,
  kNamespace,
  kLoop,
  kCallable
};

class Value {
 public:
  using Data =
      std::variant<Undefined, std::monostate, bool, int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>, Namespace*,
                   std::shared_ptr<LoopState>, std::shared_ptr<const Callable>>;

  Value() = default;  // undefined
  explicit Value(Data data) : data_(std::move(data)) {}
  static Value None() { return Value(Data(std::monostate())); }
  static Value Bool(bool value) { return Value(Data(value)); }
  static Value Integer(int64_t value) { return Value(Data(value)); }
  static Value Float(double value) { return Value(Data(value)); }
  // An undefined value that says why.
  static Value Missing(std::string reason);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool Is(Kind kind) const { return this->kind() == kind; }
  // Bool, integer or float.
  bool IsNumber() const { return kind() >= Kind::kBool && kind() <= Kind::kFloat; }
  bool IsIntegral() const { return Is(Kind::kBool) || Is(Kind::kInteger); }

  // Each only for values of that kind.
  bool AsBool() const { return std::get<bool>(data_); }
  int64_t AsInteger() const {
    return Is(Kind::kBool) ? int64_t{AsBool()} : std::get<int64_t>(data_);
  }
  double AsDouble() const {
    return Is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(AsInteger());
  }
  const std::string& AsString() const;
  const Text& AsText() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const Sequence& AsSequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Mapping& AsMapping() const { return *std::get<std::shared_ptr<const Mapping>>(data_); }
  Namespace& AsNamespace() const { return *std::get<Namespace*>(data_); }
  LoopState& AsLoop() const { return *std::get<std::shared_ptr<LoopState>>(data_); }
  const Callable& AsCallable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  const Undefined& AsUndefined() const { return std::get<Undefined>(data_); }

  // Lists and dicts inside each other: 0 for what has no elements.
  int depth() const;
  // The identity of what the value points to, or null: equal pointers mean equal values.
  const void* address() const;
  // The name of its type in Python, for messages.
  std::string_view TypeName() const;

 private:
  Data data_;
};

// Gives memory back to the runtime that lent it. The runtime outlives all values it made.
class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(Runtime* runtime, int64_t bytes);
  MemoryLease(MemoryLease&& other) noexcept
      : runtime_(std::exchange(other.runtime_, nullptr)), bytes_(other.bytes_) {}
  MemoryLease& operator=(MemoryLease&&) = delete;
  ~MemoryLease();

 private:
  Runtime* runtime_ = nullptr;
  int64_t bytes_ = 0;
};

struct Text {
  std::string bytes;        // valid UTF-8
  int64_t code_points = 0;  // what Python counts, indexes and slices
  MemoryLease lease;
};

struct Sequence {
  // Iterators are what map(), select() and the like give: true whatever they hold, without length
  // or index, and empty once they were walked through.
  enum class Form { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };
  Form form = Form::kList;
  std::vector<Value> items;
  int depth = 1;
  int64_t range_start = 0, range_stop = 0, range_step = 1;  // of a range
  mutable bool walked = false;                              // of an iterator
  MemoryLease lease;

  bool HasLength() const { return form != Form::kIterator; }
  bool HasIndex() const {
    return form == Form::kList || form == Form::kTuple || form == Form::kRange;
  }
};

struct Mapping {
  std::vector<std::pair<Value, Value>> entries;           // in the order of insertion
  absl::flat_hash_map<std::string_view, size_t> by_text;  // entries with text keys
  int depth = 1;
  MemoryLease lease;

  // The value under a text key, or null.
  const Value* Find(std::string_view key) const;
};

// Lives as long as the Runtime.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

// The variable `loop`. The statement that made it calls Release() at its end, so that a `loop`
// stored elsewhere holds nothing.
struct LoopState {
  std::vector<Value> items;
  int64_t index = 0;
  int64_t length = 0;
  int64_t depth = 0;  // loops around this one
  std::vector<Value> changed;
  bool has_changed = false;

  void Release() {
    items.clear();
    changed.clear();
  }
};

using NativeFunction = absl::StatusOr<Value> (*)(Runtime&, const Value& self, const Arguments&);

// A function of ours, perhaps bound to a value, or a macro.
struct Callable {
  std::string_view name;
  NativeFunction native = nullptr;
  Value self;
  const Macro* macro = nullptr;  // lives as long as the Runtime
};

}  // namespace weft::jinja
