#include "coordinator/chat/jinja/value.h"

#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

Value Value::Missing(std::string reason) {
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(reason))}));
}

const std::string& Value::AsString() const { return AsText().bytes; }

int Value::depth() const {
  switch (kind()) {
    case Kind::kSequence:
      return AsSequence().depth;
    case Kind::kMapping:
      return AsMapping().depth;
    case Kind::kCallable:
      return AsCallable().self.depth();
    default:
      return 0;
  }
}

const void* Value::address() const {
  switch (kind()) {
    case Kind::kString:
      return &AsText();
    case Kind::kSequence:
      return &AsSequence();
    case Kind::kMapping:
      return &AsMapping();
    case Kind::kNamespace:
      return &AsNamespace();
    case Kind::kLoop:
      return &AsLoop();
    case Kind::kCallable:
      return &AsCallable();
    default:
      return nullptr;
  }
}

namespace {

std::string_view SequenceTypeName(Sequence::Form form) {
  switch (form) {
    case Sequence::Form::kList:
      return "list";
    case Sequence::Form::kTuple:
      return "tuple";
    case Sequence::Form::kRange:
      return "range";
    case Sequence::Form::kKeys:
      return "dict_keys";
    case Sequence::Form::kValues:
      return "dict_values";
    case Sequence::Form::kItems:
      return "dict_items";
    case Sequence::Form::kIterator:
      return "iterator";
  }
  return "sequence";
}

}  // namespace

std::string_view Value::TypeName() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kSequence:
      return SequenceTypeName(AsSequence().form);
    case Kind::kMapping:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kLoop:
      return "loop";
    case Kind::kCallable:
      return "function";
  }
  return "value";
}

MemoryLease::MemoryLease(Runtime* runtime, int64_t bytes) : runtime_(runtime), bytes_(bytes) {
  runtime_->Take(bytes_);
}

MemoryLease::~MemoryLease() {
  if (runtime_ != nullptr) runtime_->GiveBack(bytes_);
}

const Value* Mapping::Find(std::string_view key) const {
  const auto found = by_text.find(key);
  return found == by_text.end() ? nullptr : &entries[found->second].second;
}

const Value* Namespace::Find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::Set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

}  // namespace weft::jinja
