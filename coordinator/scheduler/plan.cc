#include "coordinator/scheduler/plan.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

// Names the weight that decided, or "its weight" if it has no name.
std::string WeightText(const Graph& graph, NodeId id, int32_t source) {
  const Node& node = graph.node(id);
  if (source < 0 || source >= static_cast<int64_t>(node.sources.size())) return "its weight";
  const std::string& name = graph.node(graph.Root(node.sources[source])).name;
  return name.empty() ? "its weight" : absl::StrCat("its weight '", name, "'");
}

}  // namespace

std::string CauseCode(const Assignment& assignment) {
  switch (assignment.cause) {
    case Cause::kNone:
      return "-";
    case Cause::kPin:
      return "usr";
    case Cause::kDestination:
      return "1.dst";
    case Cause::kViewSource:
      return "1.vsrc";
    case Cause::kInput:
      return "1.inp";
    case Cause::kWeight:
      return absl::StrCat("1.wgt", assignment.source);
    case Cause::kOffload:
      return "1.off";
    case Cause::kBatch:
      return "1.bat";
    case Cause::kHostBound:
      return "1.host";
    case Cause::kSpread:
      return "2.sup";
    case Cause::kBest:
      return "3.best";
    case Cause::kUpgrade:
      return "3.upg";
    case Cause::kInheritView:
      return "4.vsrc";
    case Cause::kInheritUser:
      return "4.cur";
    case Cause::kFirst:
      return "4.any";
  }
  return "?";
}

std::string CauseText(const Graph& graph, NodeId id, const Assignment& assignment) {
  switch (assignment.cause) {
    case Cause::kNone:
      return "not placed yet";
    case Cause::kPin:
      return "pinned there";
    case Cause::kDestination:
      return "its memory is there";
    case Cause::kViewSource:
      return absl::StrCat("it is in the memory of '", graph.node(graph.Root(id)).name,
                          "', which is there");
    case Cause::kInput:
      return "filled by the host before each step";
    case Cause::kWeight:
      return absl::StrCat(WeightText(graph, id, assignment.source), " lies there");
    case Cause::kOffload:
      return absl::StrCat("the device wants this batch, though ",
                          WeightText(graph, id, assignment.source),
                          " lies in host memory and is copied");
    case Cause::kBatch:
      return absl::StrCat("the device is the one for this batch and reads the memory of ",
                          WeightText(graph, id, assignment.source));
    case Cause::kHostBound:
      return "no listed device reads its memory: bound through host memory";
    case Cause::kSpread:
      return "follows its neighbours";
    case Cause::kBest:
      return "most of its sources can be read there";
    case Cause::kUpgrade:
      return "a better device with the same memory";
    case Cause::kInheritView:
      return "a view stays with its tensor";
    case Cause::kInheritUser:
      return "goes to its first reader";
    case Cause::kFirst:
      return "the first device that can run it";
  }
  return "?";
}

std::string_view ReplicaKindName(ReplicaKind kind) {
  switch (kind) {
    case ReplicaKind::kInput:
      return "input";
    case ReplicaKind::kTensor:
      return "tensor";
    case ReplicaKind::kWeight:
      return "weight";
    case ReplicaKind::kExperts:
      return "experts";
  }
  return "?";
}

}  // namespace weft
