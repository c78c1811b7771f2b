#include "coordinator/chat/jinja/runtime.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

// What a shared object takes beside its contents.
constexpr int64_t kObjectBytes = 96;

}  // namespace

Runtime::~Runtime() {
  // Ends cycles before anything is destroyed.
  for (const auto& space : namespaces_) space->attributes.clear();
}

const absl::Status& Runtime::Exhaust(std::string_view what, int64_t limit) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("the template needs more than ", limit, " ", AbslView(what)));
  }
  return status_;
}

bool Runtime::Charge(int64_t steps) {
  steps_ += steps;
  if (steps_ <= limits_.steps) return !exhausted();
  Exhaust("steps", limits_.steps);
  return false;
}

bool Runtime::HasRoom(int64_t bytes) {
  if (exhausted()) return false;
  if (bytes <= limits_.memory_bytes - memory_bytes_) return true;
  Exhaust("bytes of memory", limits_.memory_bytes);
  return false;
}

void Runtime::Take(int64_t bytes) {
  memory_bytes_ += bytes;
  HasRoom(0);
}

bool Runtime::DepthAllowed(int depth) {
  if (depth <= limits_.value_depth) return true;
  Exhaust("lists and dicts inside each other", limits_.value_depth);
  return false;
}

Value Runtime::String(std::string bytes) {
  ChargeBytes(bytes.size());
  const int64_t code_points = CodePointCount(bytes);
  MemoryLease lease(this, kObjectBytes + static_cast<int64_t>(bytes.size()));
  return Value(Value::Data(
      std::make_shared<const Text>(Text{std::move(bytes), code_points, std::move(lease)})));
}

Value Runtime::Make(Sequence::Form form, std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  Charge(1 + static_cast<int64_t>(items.size()) / 4);
  // Too deep values do not come to be: taking them apart would take too much stack.
  if (!DepthAllowed(depth + 1)) return Value();
  MemoryLease lease(this, kObjectBytes + static_cast<int64_t>(items.size() * sizeof(Value)));
  return Value(Value::Data(std::make_shared<const Sequence>(
      Sequence{form, std::move(items), depth + 1, 0, 0, 1, false, std::move(lease)})));
}

Value Runtime::Range(int64_t start, int64_t stop, int64_t step, int64_t length) {
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) items.push_back(Value::Integer(start + i * step));
  Charge(1 + length / 4);
  MemoryLease lease(this, kObjectBytes + static_cast<int64_t>(items.size() * sizeof(Value)));
  return Value(Value::Data(std::make_shared<const Sequence>(Sequence{
      Sequence::Form::kRange, std::move(items), 1, start, stop, step, false, std::move(lease)})));
}

Value Runtime::Dict(std::vector<std::pair<Value, Value>> entries) {
  Mapping mapping{
      {},
      {},
      1,
      MemoryLease(this, kObjectBytes + static_cast<int64_t>(entries.size() * (2 * sizeof(Value) +
                                                                              sizeof(void*) * 4)))};
  int depth = 0;
  for (std::pair<Value, Value>& entry : entries) {
    depth = std::max({depth, entry.first.depth(), entry.second.depth()});
    if (!Charge(1)) return Value();
    if (Value* old = const_cast<Value*>(FindKey(*this, mapping, entry.first))) {
      *old = std::move(entry.second);
      continue;
    }
    if (entry.first.Is(Kind::kString)) {
      mapping.by_text.emplace(entry.first.AsString(), mapping.entries.size());
    }
    mapping.entries.push_back(std::move(entry));
  }
  if (!DepthAllowed(depth + 1)) return Value();
  mapping.depth = depth + 1;
  return Value(Value::Data(std::make_shared<const Mapping>(std::move(mapping))));
}

Value Runtime::Function(std::string_view name, NativeFunction native, Value self) {
  return Value(Value::Data(
      std::make_shared<const Callable>(Callable{name, native, std::move(self), nullptr})));
}

Value Runtime::MacroFunction(std::string_view name, const Macro& macro) {
  return Value(
      Value::Data(std::make_shared<const Callable>(Callable{name, nullptr, Value(), &macro})));
}

Namespace* Runtime::NewNamespace() {
  Take(kObjectBytes);
  return namespaces_.emplace_back(std::make_unique<Namespace>()).get();
}

}  // namespace weft::jinja
