#include "tests/unit/coordinator/scheduler/memory_replay.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"

namespace weft {
namespace {

constexpr int64_t kCell = 64;
constexpr int32_t kNobody = -1;

class Replay {
 public:
  Replay(const Graph& graph, const std::vector<int32_t>& pool_of,
         const std::vector<MemoryPool>& pools, const MemoryOptions& options, const MemoryPlan& plan)
      : graph_(graph),
        pool_of_(pool_of),
        pools_(pools),
        options_(options),
        plan_(plan),
        readers_(graph.nodes().size()),
        taken_over_(graph.nodes().size()),
        live_(pools.size()),
        most_live_(pools.size()) {}

  std::string Run() {
    CheckShape();
    if (!error_.empty()) return error_;
    CountReaders();
    for (int32_t i = 0; i < graph_.size() && error_.empty(); ++i) {
      if (graph_.Executes(NodeId{i})) Execute(NodeId{i});
    }
    for (int32_t i = 0; i < graph_.size() && error_.empty(); ++i) {
      if (graph_.node(NodeId{i}).output) CheckIntact(NodeId{i}, graph_.Root(NodeId{i}));
    }
    for (size_t p = 0; p < pools_.size() && error_.empty(); ++p) {
      if (pools_[p].reuse && plan_.pools[p].lower_bound != most_live_[p]) {
        Fail(absl::StrCat("pool ", p, ": lower bound ", plan_.pools[p].lower_bound, ", but ",
                          most_live_[p], " bytes are live at once"));
      }
    }
    return error_;
  }

 private:
  bool Owns(NodeId id) const { return graph_.Executes(id) && graph_.Root(id) == id; }
  void Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  int64_t BytesOf(NodeId id) const {
    const MemoryPool& pool = pools_[pool_of_[Index(id)]];
    return std::max(AlignUp(pool.tensor_bytes(graph_.layout(id)), pool.alignment), pool.alignment);
  }

  void CheckShape() {
    std::vector<std::vector<int64_t>> used(pools_.size());
    for (size_t p = 0; p < pools_.size(); ++p) {
      used[p].resize(plan_.pools[p].chunk_bytes.size());
      chunks_.emplace_back();
      for (const int64_t bytes : plan_.pools[p].chunk_bytes) {
        chunks_.back().emplace_back(static_cast<size_t>(CeilDivide(bytes, kCell)), kNobody);
      }
    }
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const MemoryPlace& place = plan_.places[i];
      if (!Owns(NodeId{i})) {
        if (place.pool != -1) Fail(absl::StrCat("node ", i, " has a place without owning memory"));
        continue;
      }
      if (place.pool != pool_of_[i]) return Fail(absl::StrCat("node ", i, " is in another pool"));
      if (place.chunk < 0 || place.chunk >= static_cast<int64_t>(used[place.pool].size())) {
        return Fail(absl::StrCat("node ", i, " is in no chunk"));
      }
      if (place.offset < 0 || place.offset % pools_[place.pool].alignment != 0) {
        Fail(absl::StrCat("node ", i, " is misaligned"));
      }
      int64_t& end = used[place.pool][place.chunk];
      end = std::max(end, place.offset + BytesOf(NodeId{i}));
    }
    for (size_t p = 0; p < pools_.size(); ++p) {
      for (size_t c = 0; c < used[p].size(); ++c) {
        const int64_t bytes = plan_.pools[p].chunk_bytes[c];
        if (bytes != used[p][c]) {
          Fail(absl::StrCat("chunk ", c, " of pool ", p, " has ", bytes, " bytes, of which ",
                            used[p][c], " are used"));
        }
        if (bytes > pools_[p].max_chunk_bytes) Fail(absl::StrCat("chunk ", c, " is too large"));
      }
    }
  }

  void CountReaders() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_.node(NodeId{i}).output) ++readers_[Index(graph_.Root(NodeId{i}))];
      if (!graph_.Executes(NodeId{i})) continue;
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        ++readers_[Index(graph_.Root(source))];
      }
    }
    for (const ExtraRead& read : options_.extra_reads) ++readers_[Index(graph_.Root(read.tensor))];
  }

  // The cells of a tensor.
  std::pair<int32_t*, int32_t*> Cells(NodeId root) {
    const MemoryPlace& place = plan_.places[Index(root)];
    int32_t* const first = chunks_[place.pool][place.chunk].data() + place.offset / kCell;
    return {first, first + CeilDivide(BytesOf(root), kCell)};
  }

  void CheckIntact(NodeId reader, NodeId root) {
    if (!Owns(root)) return;
    const auto [begin, end] = Cells(root);
    for (const int32_t* cell = begin; cell != end; ++cell) {
      if (*cell == Index(root)) continue;
      return Fail(absl::StrCat("node ", Index(reader), " finds data of node ", *cell,
                               " where node ", Index(root), " should be"));
    }
  }

  void Execute(NodeId id) {
    const Node& node = graph_.node(id);
    for (const NodeId source : node.sources) CheckIntact(id, graph_.Root(source));
    for (const ExtraRead& read : options_.extra_reads) {
      if (read.at == id) CheckIntact(id, graph_.Root(read.tensor));
    }
    for (const LateRead& read : options_.late_reads) {
      if (read.until != id) continue;
      for (const NodeId source : graph_.node(read.at).sources) {
        if (!taken_over_[Index(graph_.Root(source))]) CheckIntact(read.at, graph_.Root(source));
      }
    }
    if (Owns(id)) Write(id);
    if (!IsLate(id)) DropSources(id);
    for (const LateRead& read : options_.late_reads) {
      if (read.until == id) DropSources(read.at);
    }
    for (const ExtraRead& read : options_.extra_reads) {
      if (read.at == id) Drop(graph_.Root(read.tensor));
    }
    if (Owns(id) && readers_[Index(id)] == 0) live_[pool_of_[Index(id)]] -= BytesOf(id);
  }

  void Write(NodeId id) {
    const int32_t p = pool_of_[Index(id)];
    const auto [begin, end] = Cells(id);
    bool over_source = false;
    for (int32_t* cell = begin; cell != end; ++cell) {
      if (*cell != kNobody && !pools_[p].reuse) {
        return Fail(absl::StrCat("node ", Index(id), " is over node ", *cell));
      }
      if (*cell != kNobody && readers_[*cell] > 0) {
        if (!MayTakeOver(id, NodeId{*cell})) return;
        over_source = true;
        taken_over_[*cell] = true;
      }
      *cell = Index(id);
    }
    // A source that is taken over ends as the result begins.
    if (!over_source) live_[p] += BytesOf(id);
    most_live_[p] = std::max(most_live_[p], live_[p]);
  }

  bool IsLate(NodeId id) const {
    return std::any_of(options_.late_reads.begin(), options_.late_reads.end(),
                       [id](const LateRead& read) { return read.at == id; });
  }

  void DropSources(NodeId id) {
    for (const NodeId source : graph_.node(id).sources) Drop(graph_.Root(source));
  }

  // INV-C5: the ops of the table, equal layouts, the same address, no other reader, and the source
  // itself (not a view of it).
  bool MayTakeOver(NodeId id, NodeId source) {
    const Node& node = graph_.node(id);
    const bool is_source =
        std::find(node.sources.begin(), node.sources.end(), source) != node.sources.end();
    if (is_source && options_.in_place && GetOpInfo(node.op).in_place &&
        graph_.layout(source) == node.layout && readers_[Index(source)] == 1 &&
        plan_.places[Index(source)] == plan_.places[Index(id)]) {
      return true;
    }
    Fail(absl::StrCat("node ", Index(id), " writes over node ", Index(source), ", which has ",
                      readers_[Index(source)], " readers left"));
    return false;
  }

  void Drop(NodeId root) {
    if (--readers_[Index(root)] > 0 || !Owns(root) || taken_over_[Index(root)]) return;
    live_[pool_of_[Index(root)]] -= BytesOf(root);
  }

  const Graph& graph_;
  const std::vector<int32_t>& pool_of_;
  const std::vector<MemoryPool>& pools_;
  const MemoryOptions& options_;
  const MemoryPlan& plan_;
  std::vector<int32_t> readers_;  // of a root, that have not run
  std::vector<bool> taken_over_;  // by a result in its place
  std::vector<int64_t> live_;
  std::vector<int64_t> most_live_;
  std::vector<std::vector<std::vector<int32_t>>> chunks_;  // pool, chunk, cell: whose data it holds
  std::string error_;
};

}  // namespace

std::string ReplayMemory(const Graph& graph, const std::vector<int32_t>& pool_of,
                         const std::vector<MemoryPool>& pools, const MemoryOptions& options,
                         const MemoryPlan& plan) {
  return Replay(graph, pool_of, pools, options, plan).Run();
}

}  // namespace weft
