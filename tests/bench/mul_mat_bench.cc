// How fast the CPU device multiplies: the products of two layers and the head of the 1b shape, for
// one column (decode) and many (prefill), and the tokens per second that alone would give.
//
//   weft_mul_mat_bench [THREADS [COLUMNS [TYPE...]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/graph/graph_builder.h"
#include "common/tensor/quant/reference_codec.h"
#include "tests/support/device_run.h"
#include "tests/support/number_argument.h"

namespace weft {
namespace {

constexpr int64_t kEmbedding = 2048, kKv = 512, kFeedForward = 8192, kVocabulary = 128256;
constexpr int kLayers = 16;
// Weights of two layers do not fit into the last-level cache.
constexpr int kMeasuredLayers = 2;

struct Products {
  GraphBuilder builder;
  std::vector<NodeId> weights;
  std::vector<NodeId> columns;
  int64_t bytes = 0;
  int64_t operations = 0;

  void Add(DType dtype, int64_t k, int64_t rows, NodeId column) {
    const auto id = static_cast<int32_t>(weights.size());
    weights.push_back(builder.Leaf(LeafKind::kWeight, id, dtype, {k, rows, 1, 1}, "w"));
    builder.MulMat(weights.back(), column);
    bytes += rows * RowByteSize(builder.layout(weights.back()));
    operations += 2 * k * rows * builder.layout(column).ne[1];
  }
  NodeId Column(int64_t k, int64_t count) {
    const auto id = static_cast<int32_t>(columns.size());
    columns.push_back(builder.Leaf(LeafKind::kInput, id, DType::kF32, {k, count, 1, 1}, "x"));
    return columns.back();
  }
};

Products Layers(DType dtype, int64_t count) {
  Products products;
  const NodeId x = products.Column(kEmbedding, count);
  const NodeId wide = products.Column(kFeedForward, count);
  for (int layer = 0; layer < kMeasuredLayers; ++layer) {
    for (const int64_t rows : {kEmbedding, kKv, kKv, kEmbedding, kFeedForward, kFeedForward}) {
      products.Add(dtype, kEmbedding, rows, x);
    }
    products.Add(dtype, kFeedForward, kEmbedding, wide);
  }
  return products;
}

Products Head(DType dtype) {
  Products products;
  products.Add(dtype, kEmbedding, kVocabulary, products.Column(kEmbedding, 1));
  return products;
}

// The same random row everywhere: what the values are does not change the speed.
absl::Status Fill(DeviceRun& run, const TensorLayout& layout, NodeId id) {
  Random random(1);
  std::vector<float> values(static_cast<size_t>(layout.ne[0]));
  for (float& value : values) value = static_cast<float>(random.Normal());
  std::vector<uint8_t> row(static_cast<size_t>(RowByteSize(layout)));
  RETURN_IF_ERROR(Quantize(layout.dtype, values, absl::MakeSpan(row)));
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < RowCount(layout); ++i) all.insert(all.end(), row.begin(), row.end());
  return run.Set(id, all);
}

// The best of some runs, in seconds: on the wall, and of the processor for each thread, which other
// programs do not disturb.
struct Seconds {
  double wall = 1e9;
  double processor = 1e9;
};

absl::StatusOr<Seconds> Measure(CpuDevice& device, Products products) {
  ASSIGN_OR_RETURN(const Graph graph, std::move(products.builder).Finish());
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceRun> run, DeviceRun::Create(device, graph));
  for (const NodeId id : products.weights) RETURN_IF_ERROR(Fill(*run, graph.layout(id), id));
  for (const NodeId id : products.columns) RETURN_IF_ERROR(Fill(*run, graph.layout(id), id));
  Seconds best;
  for (int i = 0; i < 9; ++i) {
    const SystemClock clock;
    const Clock::TimePoint start = clock.Now();
    const std::clock_t ticks = std::clock();
    RETURN_IF_ERROR(run->Run());
    best.wall = std::min(best.wall, SecondsSince(clock, start));
    const double used = static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC;
    best.processor = std::min(best.processor, used / device.threads());
  }
  return best;
}

absl::Status Report(CpuDevice& device, DType dtype, int64_t count) {
  const Products decode = Layers(dtype, 1);
  const Products prefill = Layers(dtype, count);
  const Products head = Head(dtype);
  ASSIGN_OR_RETURN(const Seconds decode_s, Measure(device, decode));
  ASSIGN_OR_RETURN(const Seconds prefill_s, Measure(device, prefill));
  ASSIGN_OR_RETURN(const Seconds head_s, Measure(device, head));
  const double factor = static_cast<double>(kLayers) / kMeasuredLayers;
  const auto print = [&](const char* clock, double decode_time, double prefill_time,
                         double head_time) {
    std::printf("%-6s %-9s decode %6.1f GB/s %7.2f tokens/s   prefill %7.1f GOP/s %8.1f tokens/s\n",
                std::string(DTypeName(dtype)).c_str(), clock,
                static_cast<double>(decode.bytes) / decode_time / 1e9,
                1 / (decode_time * factor + head_time),
                static_cast<double>(prefill.operations) / prefill_time / 1e9,
                static_cast<double>(count) / (prefill_time * factor));
  };
  print("wall", decode_s.wall, prefill_s.wall, head_s.wall);
  print("processor", decode_s.processor, prefill_s.processor, head_s.processor);
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  CpuDeviceOptions options;
  options.threads = argc > 1 ? NumberArgument<int>(argv[1]) : 2;
  options.instruction_set = BestInstructionSet();
  const int64_t count = argc > 2 ? NumberArgument<int64_t>(argv[2]) : 512;
  std::vector<std::string> types(argv + std::min(argc, 3), argv + argc);
  if (types.empty()) types = {"F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"};
  ASSIGN_OR_RETURN(const std::unique_ptr<CpuDevice> device, CpuDevice::Create(options));
  std::printf("%s\n", device->description().c_str());
  for (const std::string& type : types) {
    const std::optional<DType> dtype = DTypeFromName(type);
    if (!dtype) return absl::InvalidArgumentError("unknown type " + type);
    RETURN_IF_ERROR(Report(*device, *dtype, count));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const absl::Status status = weft::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
