// One rendering: makes its values, owns what may refer to itself, and counts what all that costs.
// A limit once passed stays passed: the operation may finish with any result, and the interpreter
// stops at its next look at status(). Used by one thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/chat/jinja/limits.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

// What the interpreter stores for a macro; see interpreter.h.
class MacroStore {
 public:
  virtual ~MacroStore() = default;
};

class Runtime {
 public:
  // `now` is what strftime_now() shows: the civil time of the caller's choice.
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }

  // OK until a limit was passed.
  const absl::Status& status() const { return status_; }
  bool exhausted() const { return !status_.ok(); }
  // Counts steps; false if there are no more.
  bool Charge(int64_t steps);
  // Counts the steps of copying or reading `bytes`; false if there are no more.
  bool ChargeBytes(size_t bytes) { return Charge(1 + static_cast<int64_t>(bytes / 64)); }
  // Whether that much memory may be taken now; to be asked before making something large.
  bool HasRoom(int64_t bytes);
  // Records that a limit was passed, unless one was before. Returns status().
  const absl::Status& Exhaust(std::string_view what, int64_t limit);

  void Take(int64_t bytes);
  void GiveBack(int64_t bytes) { memory_bytes_ -= bytes; }

  // `bytes` is valid UTF-8.
  Value String(std::string bytes);
  Value List(std::vector<Value> items) { return Make(Sequence::Form::kList, std::move(items)); }
  Value Tuple(std::vector<Value> items) { return Make(Sequence::Form::kTuple, std::move(items)); }
  Value Iterator(std::vector<Value> items) {
    return Make(Sequence::Form::kIterator, std::move(items));
  }
  Value Make(Sequence::Form form, std::vector<Value> items);
  // Of `length` elements; the caller has checked it against the limits.
  Value Range(int64_t start, int64_t stop, int64_t step, int64_t length);
  // Of several entries with one key, the first place and the last value remain. The keys can be
  // keys (see CheckKey in operations.h).
  Value Dict(std::vector<std::pair<Value, Value>> entries);
  Value Function(std::string_view name, NativeFunction native, Value self = Value());
  Value MacroFunction(std::string_view name, const Macro& macro);
  Namespace* NewNamespace();
  // Keeps it to the end.
  void Keep(std::unique_ptr<MacroStore> store) { kept_.push_back(std::move(store)); }

 private:
  bool DepthAllowed(int depth);

  const Limits limits_;
  const std::tm now_;
  absl::Status status_;
  int64_t steps_ = 0;
  int64_t memory_bytes_ = 0;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<MacroStore>> kept_;
};

}  // namespace weft::jinja
