// What a device of a worker answered about kinds of nodes.
//
// A kind is what Device::Supports may depend on: op, attributes, layouts of the node and its
// sources (and which of these are leafs, of which kind). So a model of any number of layers costs
// one question of a few dozen nodes per graph shape.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/device/device.h"

namespace weft {

class WorkerConnection;

struct NodeSupport {
  Support support;
  bool wants = false;
  int64_t workspace_bytes = 0;
};

// Thread-safe; questions are asked one at a time, and known answers wait for none.
class SupportCache {
 public:
  SupportCache(std::shared_ptr<WorkerConnection> connection, int32_t device,
               std::string device_name);

  // The answer about node `id`, asked for together with all unknown kinds of `graph`. A failed
  // question is not repeated for a second: its error is the answer. Errors name the worker.
  absl::StatusOr<NodeSupport> Find(const Graph& graph, NodeId id);
  int64_t queries() const;
  // Of the last question; OK if it was answered, or none was asked.
  absl::Status failure() const;

  // Equal for nodes that are of one kind. For tests.
  static std::string Signature(const Graph& graph, NodeId id);

 private:
  // The nodes, one per unknown kind; and their signatures.
  struct Question {
    std::vector<NodeId> nodes;
    std::vector<std::string> signatures;
  };
  Question NewKinds(const Graph& graph) const;
  absl::StatusOr<std::vector<NodeSupport>> Ask(const Graph& graph, const Question& question) const;

  const std::shared_ptr<WorkerConnection> connection_;
  const int32_t device_;
  const std::string device_name_;
  mutable Mutex asking_;
  absl::Status failure_ ABSL_GUARDED_BY(asking_);  // of the last question
  Clock::TimePoint failed_at_ ABSL_GUARDED_BY(asking_);
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, NodeSupport> answers_ ABSL_GUARDED_BY(mutex_);
  int64_t queries_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
