#include "worker/self_test/case_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluate_node.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft::self_test {
namespace {

constexpr double kLargestDifferences = 6;  // in deviations; the largest of some thousand is 4
// F16, BF16 and F32 made of these bytes are NaNs, integers -1: what a kernel leaves out shows.
constexpr uint8_t kPoison = 0xFF;

int64_t Bytes(const TensorLayout& layout) { return ByteExtent(layout).value_or(0); }

BufferUsage UsageOf(const Graph& graph, NodeId id) {
  const LeafAttributes* leaf = graph.leaf(id);
  if (leaf == nullptr || leaf->kind == LeafKind::kInput) return BufferUsage::kCompute;
  return leaf->kind == LeafKind::kWeight ? BufferUsage::kWeights : BufferUsage::kAny;
}

// The tensors of a case on a device, each that owns memory in a buffer of its own.
struct DeviceTensors {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<TensorPlace> places;
};

absl::StatusOr<DeviceTensors> Allocate(Device& device, const TestCase& test_case, bool in_place) {
  const Graph& graph = test_case.graph;
  BufferType& type = device.buffer_type();
  DeviceTensors tensors;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    const NodeId root = graph.Root(id);
    if (root != id) {
      const TensorPlace& place = tensors.places[static_cast<size_t>(Index(root))];
      tensors.places.push_back({place.buffer, place.offset + graph.node(id).view_offset});
    } else if (id == test_case.result && in_place) {
      const NodeId source = graph.node(id).sources[0];
      tensors.places.push_back(tensors.places[static_cast<size_t>(Index(source))]);
    } else {
      ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                       type.Allocate(type.TensorBytes(graph.layout(id)), UsageOf(graph, id)));
      RETURN_IF_ERROR(buffer->Fill(0, kPoison, buffer->size()));
      tensors.places.push_back({buffer.get(), 0});
      tensors.buffers.push_back(std::move(buffer));
    }
  }
  return tensors;
}

// Queues everything; `result` is written until the backend is synchronised.
absl::Status Queue(Backend& backend, Executable& executable, const TestCase& test_case,
                   const CaseData& data, absl::Span<const TensorPlace> places,
                   std::vector<uint8_t>& result) {
  for (size_t i = 0; i < data.size(); ++i) {
    const TensorPlace& place = places[static_cast<size_t>(Index(test_case.leafs[i].leaf))];
    RETURN_IF_ERROR(backend.Upload(data[i].data(), *place.buffer, place.offset,
                                   static_cast<int64_t>(data[i].size())));
  }
  RETURN_IF_ERROR(backend.Launch(executable));
  const NodeId root = test_case.graph.Root(test_case.result);
  const TensorPlace& place = places[static_cast<size_t>(Index(root))];
  return backend.Download(*place.buffer, place.offset, result.data(),
                          static_cast<int64_t>(result.size()));
}

std::vector<uint8_t> ResultBytes(const TestCase& test_case) {
  const Graph& graph = test_case.graph;
  return std::vector<uint8_t>(
      static_cast<size_t>(Bytes(graph.layout(graph.Root(test_case.result)))), kPoison);
}

std::vector<float> Expand(const TensorLayout& layout, const std::vector<uint8_t>& bytes) {
  std::vector<float> values(static_cast<size_t>(ElementCount(layout)));
  WEFT_CHECK(Dequantize(layout.dtype, bytes, absl::MakeSpan(values)).ok());
  return values;
}

double ShareOfDifferent(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  int64_t different = 0;
  for (size_t i = 0; i + sizeof(int32_t) <= want.size(); i += sizeof(int32_t)) {
    if (std::memcmp(&got[i], &want[i], sizeof(int32_t)) != 0) ++different;
  }
  const size_t count = std::max(want.size() / sizeof(int32_t), size_t{1});
  return static_cast<double>(different) / static_cast<double>(count);
}

}  // namespace

CaseData DataOf(const TestCase& test_case, Random& random) {
  CaseData data;
  for (const LeafValues& values : test_case.leafs) {
    data.push_back(BytesOf(test_case.graph.layout(values.leaf), values, random));
  }
  return data;
}

bool RunsInPlace(const TestCase& test_case) {
  const Graph& graph = test_case.graph;
  const Node& node = graph.node(test_case.result);
  return GetOpInfo(node.op).in_place && graph.IsLeaf(node.sources[0]) &&
         graph.layout(node.sources[0]) == node.layout;
}

absl::StatusOr<std::vector<uint8_t>> RunOnDevice(Device& device, Backend& backend,
                                                 const TestCase& test_case, const CaseData& data,
                                                 bool in_place) {
  ASSIGN_OR_RETURN(const DeviceTensors tensors, Allocate(device, test_case, in_place));
  std::vector<NodeId> nodes;
  nodes.reserve(test_case.graph.size());
  for (int32_t i = 0; i < test_case.graph.size(); ++i) nodes.push_back(NodeId{i});
  ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                   backend.Prepare({&test_case.graph, nodes, tensors.places}));
  std::vector<uint8_t> result = ResultBytes(test_case);
  absl::Status status = Queue(backend, *executable, test_case, data, tensors.places, result);
  status.Update(backend.Synchronize());
  RETURN_IF_ERROR(status);
  return result;
}

absl::StatusOr<std::vector<uint8_t>> RunOnOracle(const TestCase& test_case, const CaseData& data) {
  const Graph& graph = test_case.graph;
  CaseData memory = data;  // ops may write into their sources
  std::vector<uint8_t> result = ResultBytes(test_case);
  std::vector<uint8_t*> addresses(static_cast<size_t>(graph.size()), nullptr);
  for (size_t i = 0; i < memory.size(); ++i) {
    addresses[static_cast<size_t>(Index(test_case.leafs[i].leaf))] = memory[i].data();
  }
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (graph.Root(id) != id) {
      addresses[static_cast<size_t>(i)] =
          addresses[static_cast<size_t>(Index(graph.Root(id)))] + graph.node(id).view_offset;
    } else if (id == test_case.result) {
      addresses[static_cast<size_t>(i)] = result.data();
    }
  }
  RETURN_IF_ERROR(EvaluateNode(graph, test_case.result, addresses));
  const uint8_t* root = addresses[static_cast<size_t>(Index(graph.Root(test_case.result)))];
  return std::vector<uint8_t>(root, root + result.size());
}

double ErrorOf(const TensorLayout& layout, const std::vector<uint8_t>& got,
               const std::vector<uint8_t>& want) {
  if (layout.dtype == DType::kI32) return ShareOfDifferent(got, want);
  const std::vector<float> values = Expand(layout, got);
  const std::vector<float> expected = Expand(layout, want);
  double squares = 0;
  double squares_of_differences = 0;
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return std::numeric_limits<double>::infinity();
    const double difference = std::abs(static_cast<double>(values[i]) - expected[i]);
    squares += static_cast<double>(expected[i]) * expected[i];
    squares_of_differences += difference * difference;
    largest = std::max(largest, difference);
  }
  if (largest == 0) return 0;
  const auto count = static_cast<double>(values.size());
  const double spread =
      std::max(std::sqrt(squares_of_differences / count), largest / kLargestDifferences);
  return spread / std::sqrt(squares / count);
}

}  // namespace weft::self_test
