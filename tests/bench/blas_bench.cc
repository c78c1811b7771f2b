// What `--accel blas` gains: one product of the 1b shape's feed-forward and small ones near the
// thresholds, on the CPU device and on the BLAS device, both with the same number of threads.
//
//   weft_blas_bench [THREADS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/blas/blas_device.h"
#include "common/cpu/cpu_device.h"
#include "common/graph/graph_builder.h"
#include "common/tensor/quant/reference_codec.h"
#include "tests/support/device_run.h"
#include "tests/support/number_argument.h"

namespace weft {
namespace {

// Runs are alternated, so that a busy machine slows both sides.
constexpr int kRounds = 15;

struct Shape {
  DType dtype;
  int64_t k, rows, columns;
};

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

absl::Status Report(CpuDevice& cpu, BlasDevice& blas, const Shape& shape) {
  GraphBuilder builder;
  const NodeId weights =
      builder.Leaf(LeafKind::kWeight, 0, shape.dtype, {shape.k, shape.rows, 1, 1}, "w");
  const NodeId columns =
      builder.Leaf(LeafKind::kInput, 0, DType::kF32, {shape.k, shape.columns, 1, 1}, "x");
  builder.MulMat(weights, columns);
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Finish());
  const SystemClock clock;
  double best[2] = {1e9, 1e9};
  std::unique_ptr<DeviceRun> runs[2];
  Device* const devices[2] = {&cpu, &blas};
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(runs[i], DeviceRun::Create(*devices[i], graph));
    RETURN_IF_ERROR(Fill(*runs[i], graph.layout(weights), weights));
    RETURN_IF_ERROR(Fill(*runs[i], graph.layout(columns), columns));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      const Clock::TimePoint start = clock.Now();
      RETURN_IF_ERROR(runs[i]->Run());
      best[i] = std::min(best[i], SecondsSince(clock, start));
    }
  }
  const double operations = 2.0 * static_cast<double>(shape.k * shape.rows * shape.columns);
  std::printf(
      "%-5s %5lld x %-5lld, %4lld columns: cpu %7.1f GFLOP/s, blas %7.1f GFLOP/s, %.2f times\n",
      std::string(DTypeName(shape.dtype)).c_str(), static_cast<long long>(shape.k),
      static_cast<long long>(shape.rows), static_cast<long long>(shape.columns),
      operations / best[0] / 1e9, operations / best[1] / 1e9, best[0] / best[1]);
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  const int threads = argc > 1 ? NumberArgument<int>(argv[1]) : 2;
  CpuDeviceOptions cpu_options;
  cpu_options.threads = threads;
  cpu_options.instruction_set = BestInstructionSet();
  ASSIGN_OR_RETURN(const std::unique_ptr<CpuDevice> cpu, CpuDevice::Create(cpu_options));
  ASSIGN_OR_RETURN(std::shared_ptr<BlasLibrary> library, BlasLibrary::Load());
  BlasDeviceOptions blas_options;
  blas_options.threads = threads;
  ASSIGN_OR_RETURN(const std::unique_ptr<BlasDevice> blas,
                   BlasDevice::Create(*cpu, std::move(library), blas_options));
  std::printf("%s; %s\n", cpu->description().c_str(), blas->description().c_str());
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const int64_t least = dtype == DType::kF32 ? kBlasLeastColumns : kBlasLeastColumnsOfHalves;
    for (const int64_t columns : {least, 2 * least, int64_t{512}}) {
      RETURN_IF_ERROR(Report(*cpu, *blas, {dtype, 2048, 8192, columns}));
      RETURN_IF_ERROR(Report(*cpu, *blas, {dtype, 8192, 2048, columns}));
    }
    for (const int64_t extent : {64, 128, 256}) {
      RETURN_IF_ERROR(Report(*cpu, *blas, {dtype, extent, extent, least}));
    }
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
