// object[index] and object[start:stop:step].
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

// A slice with its bounds brought into the object, as Python's slice.indices does.
struct Steps {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;

  int64_t Count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};

absl::StatusOr<int64_t> Bound(const Value& bound, int64_t if_none) {
  if (bound.Is(Kind::kNone)) return if_none;
  if (!bound.IsIntegral()) return MisuseError("the bounds of a slice cannot be", bound);
  return bound.AsInteger();
}

int64_t Clamp(int64_t bound, int64_t length, int64_t lowest, int64_t highest) {
  if (bound < 0) bound = bound < -length ? lowest : bound + length;
  return std::clamp(bound, lowest, highest);
}

absl::StatusOr<Steps> ResolveSlice(const SliceBounds& bounds, int64_t length) {
  Steps steps;
  ASSIGN_OR_RETURN(steps.step, Bound(bounds.step, 1));
  if (steps.step == 0) return Error("the step of a slice cannot be 0");
  // Larger steps than the object reach one element, like these.
  steps.step = std::clamp(steps.step, -length - 1, length + 1);
  const int64_t lowest = steps.step > 0 ? 0 : -1;
  const int64_t highest = steps.step > 0 ? length : length - 1;
  ASSIGN_OR_RETURN(const int64_t start, Bound(bounds.start, INT64_MAX));
  ASSIGN_OR_RETURN(const int64_t stop, Bound(bounds.stop, INT64_MAX));
  steps.start = bounds.start.Is(Kind::kNone) ? (steps.step > 0 ? lowest : highest)
                                             : Clamp(start, length, lowest, highest);
  steps.stop = bounds.stop.Is(Kind::kNone) ? (steps.step > 0 ? highest : lowest)
                                           : Clamp(stop, length, lowest, highest);
  return steps;
}

std::string SliceText(const Text& text, const Steps& steps) {
  std::string out;
  const int64_t count = steps.Count();
  const bool one_byte_each = text.code_points == static_cast<int64_t>(text.bytes.size());
  const std::vector<size_t> offsets =
      one_byte_each ? std::vector<size_t>() : CodePointOffsets(text.bytes);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(steps.start + i * steps.step);
    if (one_byte_each) {
      out.push_back(text.bytes[at]);
    } else {
      out.append(text.bytes, offsets[at], offsets[at + 1] - offsets[at]);
    }
  }
  return out;
}

Value SliceItems(Runtime& runtime, const Sequence& sequence, const Steps& steps) {
  const int64_t count = steps.Count();
  if (sequence.form == Sequence::Form::kRange) {
    const auto at = [&](int64_t i) { return sequence.range_start + i * sequence.range_step; };
    if (count < 2) {  // its step no longer matters, and would grow without end
      const int64_t start = at(steps.start);
      return runtime.Range(start, start + count * sequence.range_step, sequence.range_step, count);
    }
    return runtime.Range(at(steps.start), at(steps.stop), sequence.range_step * steps.step, count);
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    items.push_back(sequence.items[static_cast<size_t>(steps.start + i * steps.step)]);
  }
  return runtime.Make(sequence.form, std::move(items));
}

// The position that a Python index means, or nothing.
std::optional<size_t> Position(const Value& index, int64_t length) {
  if (!index.IsIntegral()) return std::nullopt;
  int64_t position = index.AsInteger();
  if (position < 0 && position >= -length) position += length;
  if (position < 0 || position >= length) return std::nullopt;
  return static_cast<size_t>(position);
}

}  // namespace

std::optional<Value> ItemAt(Runtime& runtime, const Value& object, const Value& index) {
  switch (object.kind()) {
    case Kind::kString: {
      const Text& text = object.AsText();
      const auto position = Position(index, text.code_points);
      if (!position.has_value()) return std::nullopt;
      runtime.ChargeBytes(text.bytes.size());
      const auto at = static_cast<int64_t>(*position);
      return runtime.String(SliceText(text, Steps{at, at + 1, 1}));
    }
    case Kind::kSequence: {
      const Sequence& sequence = object.AsSequence();
      if (!sequence.HasIndex()) return std::nullopt;
      const auto position = Position(index, static_cast<int64_t>(sequence.items.size()));
      if (!position.has_value()) return std::nullopt;
      return sequence.items[*position];
    }
    case Kind::kMapping: {
      if (!CheckKey(runtime, index).ok()) return std::nullopt;
      const Value* value = FindKey(runtime, object.AsMapping(), index);
      if (value == nullptr) return std::nullopt;
      return *value;
    }
    default:
      return std::nullopt;
  }
}

absl::StatusOr<Value> SliceOf(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  if (object.Is(Kind::kString)) {
    const Text& text = object.AsText();
    ASSIGN_OR_RETURN(const Steps steps, ResolveSlice(bounds, text.code_points));
    if (!runtime.ChargeBytes(text.bytes.size()) || !runtime.HasRoom(text.code_points * 8)) {
      return runtime.status();
    }
    return runtime.String(SliceText(text, steps));
  }
  if (object.Is(Kind::kSequence) && object.AsSequence().HasIndex()) {
    const Sequence& sequence = object.AsSequence();
    ASSIGN_OR_RETURN(const Steps steps,
                     ResolveSlice(bounds, static_cast<int64_t>(sequence.items.size())));
    return SliceItems(runtime, sequence, steps);
  }
  return MisuseError("cannot take a slice of", object);
}

}  // namespace weft::jinja
