#include "common/blas/blas_device.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/blas/blas_product.h"
#include "coordinator/scheduler/pass_pipeline.h"
#include "coordinator/scheduler/plan_context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/op_cases.h"
#include "tests/conformance/op_conformance.h"
#include "tests/support/device_run.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<CpuDevice> Cpu() {
  CpuDeviceOptions options;
  options.name = "local.cpu0";
  options.instruction_set = BestInstructionSet();
  absl::StatusOr<std::unique_ptr<CpuDevice>> cpu = CpuDevice::Create(options);
  EXPECT_OK(cpu);
  return *std::move(cpu);
}

TEST(BlasLibrary, AbsentOrOther_IsAClearError) {
  EXPECT_THAT(BlasLibrary::Load("libno-such-blas.so.9"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("cannot load OpenBLAS: libno-such-blas.so.9"),
                             HasSubstr("install libopenblas0-pthread"))));
  EXPECT_THAT(BlasLibrary::Load("libm.so.6"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                       HasSubstr("libm.so.6 is not OpenBLAS")));
}

// Everything else needs the library.
class BlasDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::shared_ptr<BlasLibrary>> library = BlasLibrary::Load();
    if (absl::IsNotFound(library.status())) GTEST_SKIP() << library.status().message();
    ASSERT_OK(library);
    library_ = *std::move(library);
    blas_ = Open(2);
  }

  std::unique_ptr<BlasDevice> Open(int threads) {
    BlasDeviceOptions options;
    options.name = "local.blas0";
    options.threads = threads;
    absl::StatusOr<std::unique_ptr<BlasDevice>> blas = BlasDevice::Create(*cpu_, library_, options);
    EXPECT_OK(blas);
    return *std::move(blas);
  }

  std::unique_ptr<CpuDevice> cpu_ = Cpu();
  std::shared_ptr<BlasLibrary> library_;
  std::unique_ptr<BlasDevice> blas_;
};

OpCase ProductCase(DType dtype, const Extents& a, const Extents& b, uint64_t seed) {
  CaseBuilder builder(seed);
  const NodeId weights = builder.Normal(a, dtype);
  const NodeId result = builder.builder().MulMat(weights, builder.Normal(b));
  return std::move(builder).Finish(
      absl::StrCat("mul_mat ", std::string(DTypeName(dtype)), ExtentsText(a), ExtentsText(b)),
      result, ProductTolerance(dtype, a[0]));
}

// Products that BLAS takes: odd extents, batches that repeat, more than one panel.
std::vector<OpCase> TakenCases(uint64_t seed) {
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    cases.push_back(ProductCase(dtype, {64, 64, 1, 1}, {64, 64, 1, 1}, ++seed));
    cases.push_back(ProductCase(dtype, {321, 67, 1, 1}, {321, 65, 1, 1}, ++seed));
    cases.push_back(ProductCase(dtype, {128, 131, 2, 3}, {128, 70, 4, 6}, ++seed));
    cases.push_back(ProductCase(dtype, {8192, 150, 1, 1}, {8192, 64, 1, 1}, ++seed));
    cases.push_back(ProductCase(dtype, {96, 500, 1, 1}, {96, 333, 1, 1}, ++seed));
  }
  cases.push_back(ProductCase(DType::kF32, {64, 64, 1, 1}, {64, 32, 1, 1}, ++seed));
  return cases;
}

// sum((got - want)^2) / sum(want^2).
double NormalizedError(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  EXPECT_EQ(got.size(), want.size());
  double error = 0;
  double size = 0;
  for (size_t i = 0; i + 4 <= want.size(); i += 4) {
    float g = 0;
    float w = 0;
    std::memcpy(&g, &got[i], 4);
    std::memcpy(&w, &want[i], 4);
    error += (double{g} - w) * (double{g} - w);
    size += double{w} * w;
  }
  return error / size;
}

TEST_F(BlasDeviceTest, WhatItTakes_IsNearTheOracle) {
  for (const OpCase& op_case : TakenCases(TestSeed(20))) {
    SCOPED_TRACE(op_case.name);
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> got, RunCase(*blas_, op_case));
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> want, RunCaseOnOracle(op_case));
    EXPECT_LE(NormalizedError(got, want), 1e-10);
  }
}

// Of the table that every device is tested with it takes the large plain products, right, and
// refuses the rest.
TEST_F(BlasDeviceTest, ConformanceTable_IsComputedOrRefused) {
  std::vector<OpCase> cases;
  for (OpCase& op_case : ProductCases(TestSeed(21))) {
    if (blas_->Supports(op_case.graph, op_case.result).ok()) {
      cases.push_back(std::move(op_case));
    } else {
      EXPECT_FALSE(DeviceRun::Create(*blas_, op_case.graph).ok()) << op_case.name;
    }
  }
  std::printf("%zu cases of the table are computed\n", cases.size());
  EXPECT_GE(cases.size(), 1u);
  EXPECT_EQ(CheckCases(*blas_, cases), 0);
}

TEST_F(BlasDeviceTest, Refusals_SayWhy) {
  const auto reason = [&](const std::function<NodeId(CaseBuilder&)>& build) {
    CaseBuilder builder(1);
    const NodeId node = build(builder);
    const OpCase op_case = std::move(builder).Finish("refused", node, kExact);
    return std::string(blas_->Supports(op_case.graph, op_case.result).message());
  };
  const auto product = [&](DType dtype, const Extents& a, const Extents& b) {
    return reason(
        [&](CaseBuilder& c) { return c.builder().MulMat(c.Normal(a, dtype), c.Normal(b)); });
  };
  EXPECT_EQ(product(DType::kF32, {64, 64, 1, 1}, {64, 32, 1, 1}), "");
  EXPECT_THAT(product(DType::kF32, {64, 64, 1, 1}, {64, 31, 1, 1}),
              HasSubstr("31 columns, BLAS is worth it from 32"));
  EXPECT_THAT(product(DType::kBF16, {64, 64, 1, 1}, {64, 63, 1, 1}),
              HasSubstr("63 columns, BLAS is worth it from 64"));
  EXPECT_THAT(product(DType::kF32, {63, 64, 1, 1}, {63, 64, 1, 1}), HasSubstr("63 by 64"));
  EXPECT_THAT(product(DType::kF32, {64, 63, 1, 1}, {64, 64, 1, 1}), HasSubstr("64 by 63"));
  EXPECT_THAT(product(DType::kQ8_0, {64, 64, 1, 1}, {64, 64, 1, 1}), HasSubstr("no Q8_0 weights"));
  EXPECT_THAT(reason([](CaseBuilder& c) {
                const NodeId x = c.Normal({64, 64, 1, 1});
                return c.builder().Add(x, x);
              }),
              HasSubstr("mul_mat only, not add"));
  EXPECT_THAT(reason([](CaseBuilder& c) {
                const NodeId turned = c.builder().Permute(c.Normal({64, 64, 64, 1}), {0, 2, 1, 3});
                return c.builder().MulMat(turned, c.Normal({64, 64, 64, 1}));
              }),
              HasSubstr("packed"));
}

TEST_F(BlasDeviceTest, MemoryIsTheCpus) {
  EXPECT_EQ(&blas_->buffer_type(), &cpu_->buffer_type());
  EXPECT_EQ(blas_->host(), cpu_->host());
  EXPECT_EQ(blas_->kind(), DeviceKind::kAccelerator);
  EXPECT_OK(blas_->Supports(cpu_->buffer_type()));
  EXPECT_FALSE(blas_->capabilities().wraps_host_memory);
  char byte = 0;
  EXPECT_THAT(blas_->WrapHostMemory(&byte, 1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no memory of its own")));
  EXPECT_THAT(blas_->description(), AllOf(HasSubstr("OpenBLAS"), HasSubstr("2 threads")));
}

TEST_F(BlasDeviceTest, Workspace_IsAPanelAtMost) {
  const auto workspace = [&](DType dtype, int64_t k, int64_t rows) {
    GraphBuilder g;
    const NodeId weights = g.Leaf(LeafKind::kWeight, 0, dtype, {k, rows, 1, 1}, "w");
    const NodeId columns = g.Leaf(LeafKind::kInput, 0, DType::kF32, {k, 64, 1, 1}, "x");
    const NodeId product = g.MulMat(weights, columns);
    return blas_->WorkspaceBytes(g.graph(), product);
  };
  EXPECT_EQ(workspace(DType::kF32, 8192, 300), 0);
  EXPECT_EQ(workspace(DType::kF16, 8192, 300), kBlasPanelBytes);
  EXPECT_EQ(workspace(DType::kBF16, 64, 70), 64 * 70 * 4);
  EXPECT_EQ(workspace(DType::kF16, kBlasPanelBytes, 64), kBlasPanelBytes * 4);
  EXPECT_EQ(workspace(DType::kQ8_0, 8192, 300), 0);
}

// With a progress callback products are cut finer; the result stays.
TEST_F(BlasDeviceTest, Progress_IsCalledInsideOneProduct) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const OpCase op_case = ProductCase(dtype, {4096, 600, 1, 1}, {4096, 200, 1, 1}, 5);
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> want, RunCase(*blas_, op_case));
    int calls = 0;
    BackendOptions options;
    options.progress = [&] { ++calls; };
    ASSERT_OK_AND_ASSIGN(const auto run, DeviceRun::Create(*blas_, op_case.graph, options));
    for (const auto& [leaf, bytes] : op_case.leafs) ASSERT_OK(run->Set(leaf, bytes));
    ASSERT_OK(run->Run());
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> got, run->Get(op_case.result));
    EXPECT_LE(NormalizedError(got, want), 1e-12);
    // 0.98 GFLOP in pieces of at most 0.13.
    EXPECT_GE(calls, 8);
  }
}

TEST_F(BlasDeviceTest, Threads_AreSetForEachCall) {
  // The library's own answer.
  void* library = dlopen(BlasLibrary::kOpenBlas, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto threads = reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_num_threads"));
  ASSERT_NE(threads, nullptr);
  const std::unique_ptr<BlasDevice> one = Open(1);
  const OpCase op_case = ProductCase(DType::kF32, {512, 512, 1, 1}, {512, 128, 1, 1}, 6);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> want, RunCaseOnOracle(op_case));
  for (int round = 0; round < 3; ++round) {
    for (BlasDevice* device : {one.get(), blas_.get()}) {
      ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> got, RunCase(*device, op_case));
      EXPECT_LE(NormalizedError(got, want), 1e-12);
      EXPECT_EQ(threads(), device->threads());
    }
  }
}

// The scheduler moves a prompt's products from the CPU without a copy, and no decode step's.
TEST_F(BlasDeviceTest, Scheduler_UpgradesLargeProducts) {
  for (const int64_t tokens : {1, 64}) {
    GraphBuilder g;
    const NodeId weights = g.Leaf(LeafKind::kWeight, 0, DType::kF16, {256, 128, 1, 1}, "w");
    const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {256, tokens, 1, 1}, "x");
    const NodeId product = g.MulMat(weights, x);
    const NodeId activated = g.Unary(product, UnaryKind::kSilu);
    g.MarkOutput(activated);
    ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
    PlanInput input;
    input.graph = &graph;
    input.devices = {blas_.get(), cpu_.get()};
    input.leafs.resize(static_cast<size_t>(graph.size()));
    input.leafs[static_cast<size_t>(Index(weights))] = {&cpu_->buffer_type(),
                                                        BufferUsage::kWeights};
    input.batch = tokens;
    ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
    Plan plan;
    ASSERT_OK(PassPipeline().Run(context, plan, {}).status());
    EXPECT_EQ(plan.assignments[static_cast<size_t>(Index(product))].device, tokens == 1 ? 1 : 0);
    EXPECT_EQ(plan.assignments[static_cast<size_t>(Index(activated))].device, 1);
    EXPECT_TRUE(plan.replicas.empty());
  }
}

TEST_F(BlasDeviceTest, BadOptions_AreRefused) {
  BlasDeviceOptions options;
  options.threads = 0;
  EXPECT_THAT(BlasDevice::Create(*cpu_, library_, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 threads")));
  options.threads = 2;
  EXPECT_THAT(BlasDevice::Create(*cpu_, nullptr, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no library")));
}

}  // namespace
}  // namespace weft
