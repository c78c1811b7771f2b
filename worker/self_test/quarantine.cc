#include "worker/self_test/quarantine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/graph/plain_form.h"

namespace weft {
namespace {

size_t BitOf(DType dtype) { return static_cast<size_t>(dtype); }

}  // namespace

OpKind OpKindOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  OpKind kind;
  kind.op = node.op;
  kind.fused = HasPlainForm(node);
  kind.types.set(BitOf(node.layout.dtype));
  for (const NodeId source : node.sources) kind.types.set(BitOf(graph.layout(source).dtype));
  for (const DType ordinary : {DType::kI32, DType::kF32}) {
    if (kind.types.count() > 1) kind.types.reset(BitOf(ordinary));
  }
  return kind;
}

std::string OpKindText(const OpKind& kind) {
  std::string text = absl::StrCat(kind.fused ? "fused " : "", AbslView(OpName(kind.op)));
  for (const DTypeInfo& info : AllDTypes()) {
    if (kind.types.test(BitOf(info.dtype))) absl::StrAppend(&text, " ", AbslView(info.name));
  }
  return text;
}

void Quarantine::Add(const OpKind& kind, std::string why) {
  const bool known = std::any_of(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.kind == kind; });
  if (!known) entries_.push_back({kind, std::move(why)});
}

Support Quarantine::Check(const Graph& graph, NodeId id) const {
  if (entries_.empty()) return absl::OkStatus();
  const OpKind node = OpKindOf(graph, id);
  for (const auto& [kind, why] : entries_) {
    const bool covers = kind.op == node.op && (kind.types & node.types) == kind.types &&
                        (node.fused || !kind.fused);
    if (!covers) continue;
    return absl::UnimplementedError(absl::StrCat(device_, " computed ", OpKindText(kind),
                                                 " wrong in its self-test (", why, ")"));
  }
  return absl::OkStatus();
}

std::vector<std::string> Quarantine::Texts() const {
  std::vector<std::string> texts;
  texts.reserve(entries_.size());
  for (const auto& [kind, why] : entries_) {
    texts.push_back(absl::StrCat(OpKindText(kind), ": ", why));
  }
  return texts;
}

}  // namespace weft
