#include "rpc_backend/client/support_cache.h"

#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/graph_codec.h"

namespace weft {
namespace {

// Beyond it the cache starts again from nothing.
constexpr size_t kMaxKinds = 16384;
constexpr std::chrono::milliseconds kAskAgainAfter{1000};

}  // namespace

SupportCache::SupportCache(std::shared_ptr<WorkerConnection> connection, int32_t device,
                           std::string device_name)
    : connection_(std::move(connection)), device_(device), device_name_(std::move(device_name)) {}

std::string SupportCache::Signature(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Graph kind;
  Node copy;
  copy.op = node.op;
  copy.attributes = node.attributes;
  copy.layout = node.layout;
  for (const NodeId source : node.sources) {
    const LeafAttributes* leaf = graph.leaf(source);
    const NodeId stand_in = kind.Append(Node{});
    kind.mutable_node(stand_in).attributes =
        LeafAttributes{leaf == nullptr ? LeafKind::kInput : leaf->kind, 0};
    kind.mutable_node(stand_in).layout = graph.layout(source);
    copy.sources.push_back(stand_in);
  }
  kind.Append(std::move(copy));
  return EncodeGraph(kind);
}

absl::StatusOr<NodeSupport> SupportCache::Find(const Graph& graph, NodeId id) {
  const std::string signature = Signature(graph, id);
  const auto known = [&]() -> const NodeSupport* {
    const auto found = answers_.find(signature);
    return found == answers_.end() ? nullptr : &found->second;
  };
  {
    MutexLock lock(mutex_);
    if (const NodeSupport* answer = known(); answer != nullptr) return *answer;
  }
  MutexLock asking(asking_);
  {
    MutexLock lock(mutex_);
    if (const NodeSupport* answer = known(); answer != nullptr) return *answer;
  }
  RETURN_IF_ERROR(connection_->lost());
  const Clock::TimePoint now = connection_->clock().Now();
  if (!failure_.ok() && now - failed_at_ < kAskAgainAfter) return failure_;
  const Question question = NewKinds(graph);
  absl::StatusOr<std::vector<NodeSupport>> answers = Ask(graph, question);
  failure_ = answers.status();
  if (!answers.ok()) {
    failed_at_ = connection_->clock().Now();
    return failure_;
  }
  MutexLock lock(mutex_);
  ++queries_;
  if (answers_.size() + answers->size() > kMaxKinds) answers_.clear();
  for (size_t i = 0; i < answers->size(); ++i) {
    answers_[question.signatures[i]] = std::move((*answers)[i]);
  }
  const NodeSupport* answer = known();
  if (answer != nullptr) return *answer;
  return absl::InternalError(absl::StrCat(device_name_, " was not asked about ",
                                          NodeText(graph, id), ", which no device executes"));
}

SupportCache::Question SupportCache::NewKinds(const Graph& graph) const {
  Question question;
  std::set<std::string> seen;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (!graph.Executes(id)) continue;
    std::string signature = Signature(graph, id);
    {
      MutexLock lock(mutex_);
      if (answers_.contains(signature)) continue;
    }
    if (!seen.insert(signature).second) continue;
    question.nodes.push_back(id);
    question.signatures.push_back(std::move(signature));
  }
  return question;
}

absl::StatusOr<std::vector<NodeSupport>> SupportCache::Ask(const Graph& graph,
                                                           const Question& question) const {
  constexpr std::string_view kVerb = "QuerySupport";
  proto::QuerySupportRequest request;
  proto::QuerySupportReply reply;
  request.set_device(device_);
  request.set_graph(EncodeGraph(graph));
  for (const NodeId id : question.nodes) request.add_nodes(Index(id));
  RETURN_IF_ERROR(connection_->Invoke(kVerb, &proto::Worker::Stub::QuerySupport, request, reply));
  if (reply.nodes_size() != request.nodes_size()) {
    return connection_->Nonsense(kVerb, absl::StrCat(reply.nodes_size(), " answers to ",
                                                     request.nodes_size(), " questions"));
  }
  std::vector<NodeSupport> answers;
  for (const proto::NodeSupport& node : reply.nodes()) {
    answers.push_back({.support = node.ok() ? absl::OkStatus()
                                            : absl::UnimplementedError(
                                                  absl::StrCat(device_name_, ": ", node.reason())),
                       .wants = node.wants(),
                       .workspace_bytes = node.workspace_bytes()});
  }
  return answers;
}

absl::Status SupportCache::failure() const {
  MutexLock lock(asking_);
  return failure_;
}

int64_t SupportCache::queries() const {
  MutexLock lock(mutex_);
  return queries_;
}

}  // namespace weft
