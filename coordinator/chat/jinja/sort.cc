#include "coordinator/chat/jinja/sort.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attribute_path.h"
#include "coordinator/chat/jinja/operations.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {

Value FoldCase(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.Is(Kind::kString)) return value;
  return runtime.String(Lower(value.AsString()));
}

absl::StatusOr<Value> SortKey(Runtime& runtime, const Value& item, const Value& attribute,
                              bool case_sensitive) {
  if (!attribute.Is(Kind::kString)) {
    ASSIGN_OR_RETURN(const Value key, AttributeAt(runtime, item, attribute));
    return FoldCase(runtime, key, case_sensitive);
  }
  const std::vector<std::string> paths = absl::StrSplit(attribute.AsString(), ',');
  std::vector<Value> keys;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const Value key, AttributeAt(runtime, item, runtime.String(path)));
    keys.push_back(FoldCase(runtime, key, case_sensitive));
  }
  return runtime.List(std::move(keys));
}

absl::StatusOr<std::vector<size_t>> SortedOrder(Runtime& runtime, const std::vector<Value>& keys,
                                                bool reverse) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Merges runs of doubling length. Written out because comparing can fail.
  std::vector<size_t> merged(order.size());
  for (size_t run = 1; run < order.size(); run *= 2) {
    for (size_t start = 0; start < order.size(); start += 2 * run) {
      const size_t middle = std::min(start + run, order.size());
      const size_t end = std::min(start + 2 * run, order.size());
      size_t left = start;
      size_t right = middle;
      for (size_t out = start; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Value& a = keys[order[reverse ? left : right]];
          const Value& b = keys[order[reverse ? right : left]];
          ASSIGN_OR_RETURN(const std::partial_ordering less, Order(runtime, a, b));
          take_right = std::is_lt(less);
        }
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace weft::jinja
