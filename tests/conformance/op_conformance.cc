#include "tests/conformance/op_conformance.h"

#include <cstdio>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/tensor/quant/reference_codec.h"
#include "tests/support/device_run.h"
#include "tests/support/host_graph.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

// The elements of the root tensor as numbers.
std::vector<double> Numbers(const TensorLayout& layout, const std::vector<uint8_t>& bytes) {
  std::vector<double> numbers;
  if (layout.dtype == DType::kI32) {
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      int32_t value = 0;
      std::memcpy(&value, &bytes[i], 4);
      numbers.push_back(value);
    }
    return numbers;
  }
  const auto row_bytes = static_cast<size_t>(RowByteSize(layout));
  std::vector<float> row(static_cast<size_t>(layout.ne[0]));
  for (size_t at = 0; row_bytes > 0 && at < bytes.size(); at += row_bytes) {
    EXPECT_OK(Dequantize(layout.dtype, absl::MakeConstSpan(bytes).subspan(at, row_bytes),
                         absl::MakeSpan(row)));
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> RunCase(Device& device, const OpCase& op_case) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceRun> run, DeviceRun::Create(device, op_case.graph));
  for (const auto& [leaf, bytes] : op_case.leafs) RETURN_IF_ERROR(run->Set(leaf, bytes));
  RETURN_IF_ERROR(run->Run());
  return run->Get(op_case.graph.Root(op_case.result));
}

absl::StatusOr<std::vector<uint8_t>> RunCaseOnOracle(const OpCase& op_case) {
  HostGraph host(op_case.graph);
  for (const auto& [leaf, bytes] : op_case.leafs) {
    if (!bytes.empty()) std::memcpy(host.bytes(leaf).data(), bytes.data(), bytes.size());
  }
  RETURN_IF_ERROR(host.Run());
  const absl::Span<const uint8_t> bytes = host.bytes(op_case.graph.Root(op_case.result));
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

int CheckCases(Device& device, absl::Span<const OpCase> cases) {
  int refused = 0;
  for (const OpCase& op_case : cases) {
    SCOPED_TRACE(op_case.name);
    if (const Support support = device.Supports(op_case.graph, op_case.result); !support.ok()) {
      std::printf("refused: %s: %s\n", op_case.name.c_str(), support.ToString().c_str());
      ++refused;
      continue;
    }
    const absl::StatusOr<std::vector<uint8_t>> want = RunCaseOnOracle(op_case);
    const absl::StatusOr<std::vector<uint8_t>> got = RunCase(device, op_case);
    EXPECT_OK(want);
    EXPECT_OK(got);
    if (!want.ok() || !got.ok()) continue;
    const TensorLayout& layout = op_case.graph.layout(op_case.graph.Root(op_case.result));
    EXPECT_THAT(Numbers(layout, *got), IsNear(Numbers(layout, *want), op_case.tolerance));
  }
  return refused;
}

}  // namespace weft
