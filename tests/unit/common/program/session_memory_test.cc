// What the instances of a session share: page tables, arenas, caches, programs.
#include <bit>
#include <cstring>

#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/gate.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Integers(const std::vector<uint8_t>& bytes) {
  std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

int32_t FloatBits(float x) { return std::bit_cast<int32_t>(x); }

// Hands back page table 0 of so many entries, and page 1 of cache 0 (4 pages of 2 floats).
Program ShowTable(int64_t entries) {
  GraphBuilder builder;
  const NodeId table =
      builder.Leaf(LeafKind::kPageTable, 0, DType::kI32, {entries, 1, 1, 1}, "table");
  const NodeId cache = builder.Leaf(LeafKind::kCache, 0, DType::kF32, {2, 4, 1, 1}, "cache");
  const NodeId page = builder.View(cache, {2, 1, 1, 1}, {4, 8, 8, 8}, 8);
  builder.MarkOutput(builder.Name(builder.Copy(table, DType::kI32), "table copy"));
  builder.MarkOutput(builder.Name(builder.Copy(page, DType::kF32), "page copy"));
  Graph graph = *std::move(builder).Finish();
  const std::vector<int32_t> devices(static_cast<size_t>(graph.size()), 0);
  return CompileForTest(graph, devices, 1);
}

class SessionMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(nullptr, ProgramLimits{}); }

  void Start(std::function<absl::Status(const Graph&, NodeId)> before_node, ProgramLimits limits) {
    host_.reset();
    cache_.reset();
    FakeDeviceOptions fake_options;
    fake_options.before_node = std::move(before_node);
    fake_ = std::make_unique<FakeDevice>(std::move(fake_options));
    LocalProgramHostOptions options;
    options.devices = {fake_.get()};
    options.limits = limits;
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(cache_, fake_->buffer_type().Allocate(32, BufferUsage::kAny));
    const float content[] = {0, 1, 2, 3, 4, 5, 6, 7};
    ASSERT_OK(cache_->Set(0, content, 32));
    step_ = 0;
  }

  absl::StatusOr<InstanceId> Instantiate(int64_t entries) {
    const absl::StatusOr<ProgramId> program = host_->Install(ShowTable(entries));
    if (!program.ok()) return program.status();
    return host_->Instantiate(*program, {{SlotKind::kCache, 0, cache_.get(), 0}});
  }

  absl::Status Launch(InstanceId instance, std::vector<TableUpdate> updates,
                      std::vector<PageCopy> copies = {}) {
    StepInput input;
    input.step = step_ + 1;
    input.table_updates = std::move(updates);
    input.page_copies = std::move(copies);
    absl::Status status = host_->Launch(instance, input);
    if (status.ok()) ++step_;
    return status;
  }

  std::vector<int32_t> TableAfter(int64_t step) {
    const absl::StatusOr<StepOutput> output = host_->Await(step, Soon());
    EXPECT_OK(output);
    return output.ok() ? Integers(output->outputs[0]) : std::vector<int32_t>{};
  }

  std::unique_ptr<FakeDevice> fake_;
  std::unique_ptr<Buffer> cache_;
  std::unique_ptr<LocalProgramHost> host_;
  int64_t step_ = 0;
};

TEST_F(SessionMemoryTest, TableUpdates_AreSeenByAllInstances) {
  ASSERT_OK_AND_ASSIGN(const InstanceId small, Instantiate(3));
  ASSERT_OK_AND_ASSIGN(const InstanceId again, Instantiate(3));
  ASSERT_OK(Launch(small, {{0, 0, 5}, {0, 1, 6}, {0, 0, 7}}));
  ASSERT_OK(Launch(again, {{0, 2, 9}}));
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{7, 6, 0}));
  EXPECT_EQ(TableAfter(2), (std::vector<int32_t>{7, 6, 9}));
}

TEST_F(SessionMemoryTest, LargerInstance_GrowsTheTableAndKeepsItsContent) {
  ASSERT_OK_AND_ASSIGN(const InstanceId small, Instantiate(2));
  ASSERT_OK(Launch(small, {{0, 1, 4}}));
  ASSERT_OK_AND_ASSIGN(const InstanceId large, Instantiate(5));
  ASSERT_OK(Launch(large, {{0, 4, 8}}));
  ASSERT_OK(Launch(small, {{0, 0, 3}, {0, 3, 1}}));
  ASSERT_OK(Launch(large, {}));
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(TableAfter(2), (std::vector<int32_t>{0, 4, 0, 0, 8}));
  EXPECT_EQ(TableAfter(3), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(TableAfter(4), (std::vector<int32_t>{3, 4, 0, 1, 8}));
}

TEST_F(SessionMemoryTest, WrongUpdates_AreRefusedAndTheStepIsNotTaken) {
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(3));
  const TableUpdate good = {0, 0, 1};
  const TableUpdate bad[] = {{0, 3, 1}, {0, -1, 1}, {0, 0, -1}, {1, 0, 1}, {-1, 0, 1}};
  for (const TableUpdate& update : bad) {
    EXPECT_THAT(Launch(instance, {good, update}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page table")))
        << update.table << " " << update.entry << " " << update.page;
  }
  ASSERT_OK(Launch(instance, {}));
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{0, 0, 0}));
}

TEST_F(SessionMemoryTest, PageCopy_HappensBeforeTheStepComputes) {
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(1));
  ASSERT_OK(Launch(instance, {}, {{0, 3, 1, 8}}));
  ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(1, Soon()));
  EXPECT_EQ(Integers(output.outputs[1]), (std::vector<int32_t>{FloatBits(6), FloatBits(7)}));
}

TEST_F(SessionMemoryTest, WrongPageCopies_AreRefused) {
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(1));
  const PageCopy bad[] = {{0, 4, 1, 8},  {0, 1, 4, 8},  {0, -1, 1, 8},
                          {0, 1, -1, 8}, {0, 1, 2, 0},  {0, 1, 2, -8},
                          {1, 1, 2, 8},  {0, 1, 2, 16}, {0, 2147483647, 1, int64_t{1} << 62}};
  for (const PageCopy& copy : bad) {
    EXPECT_THAT(Launch(instance, {}, {copy}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page copy")));
  }
  EXPECT_OK(Launch(instance, {}, {{0, 3, 0, 8}}));
}

TEST_F(SessionMemoryTest, CancelledStep_StillUpdatesTablesAndPages) {
  Gate gate;
  Start(
      [&](const Graph&, NodeId) {
        gate.Pass();
        return absl::OkStatus();
      },
      ProgramLimits{});
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(2));
  ASSERT_OK(Launch(instance, {{0, 0, 1}}));
  ASSERT_OK(Launch(instance, {{0, 1, 2}}, {{0, 3, 1, 8}}));
  ASSERT_OK(Launch(instance, {}));
  gate.AwaitArrival(1);
  ASSERT_OK(host_->Cancel(2));
  gate.Open();
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{1, 0}));
  EXPECT_THAT(host_->Await(2, Soon()), StatusIs(absl::StatusCode::kCancelled, HasSubstr("step 2")));
  ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(3, Soon()));
  EXPECT_EQ(Integers(output.outputs[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(Integers(output.outputs[1]), (std::vector<int32_t>{FloatBits(6), FloatBits(7)}));
  host_.reset();
}

TEST_F(SessionMemoryTest, EqualPrograms_ShareAnId_UnusedOnesMakeRoom) {
  ProgramLimits limits;
  limits.programs = 2;
  Start(nullptr, limits);
  ASSERT_OK_AND_ASSIGN(const ProgramId first, host_->Install(ShowTable(1)));
  ASSERT_OK_AND_ASSIGN(const ProgramId second, host_->Install(ShowTable(2)));
  EXPECT_NE(first, second);
  EXPECT_EQ(*host_->Install(ShowTable(1)), first);
  // `second` was used longest ago.
  ASSERT_OK_AND_ASSIGN(const ProgramId third, host_->Install(ShowTable(3)));
  EXPECT_EQ(*host_->Install(ShowTable(1)), first);
  const SlotBinding binding = {SlotKind::kCache, 0, cache_.get(), 0};
  EXPECT_THAT(host_->Instantiate(second, {binding}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("is not installed")));
  ASSERT_OK(host_->Instantiate(first, {binding}));
  ASSERT_OK(host_->Instantiate(third, {binding}));
  EXPECT_THAT(host_->Install(ShowTable(2)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("in use")));
}

TEST_F(SessionMemoryTest, Bindings_AreChecked) {
  ASSERT_OK_AND_ASSIGN(const ProgramId program, host_->Install(ShowTable(1)));
  FakeDevice other(FakeDeviceOptions{});
  ASSERT_OK_AND_ASSIGN(const auto foreign, other.buffer_type().Allocate(64, BufferUsage::kAny));
  struct Case {
    std::vector<SlotBinding> bindings;
    const char* error;
  };
  const Case cases[] = {
      {{}, "cache 0 is not bound"},
      {{{SlotKind::kWeight, 0, cache_.get(), 0}}, "cache 0 is not bound"},
      {{{SlotKind::kCache, 0, nullptr, 0}}, "bound to no buffer"},
      {{{SlotKind::kCache, 0, cache_.get(), 8}}, "leave a buffer of 32 bytes"},
      {{{SlotKind::kCache, 0, cache_.get(), -8}}, "leave a buffer of 32 bytes"},
      {{{SlotKind::kCache, 0, foreign.get(), 0}}, "cannot read"},
      {{{SlotKind::kCache, 0, cache_.get(), 0}, {SlotKind::kCache, 0, cache_.get(), 0}}, "twice"},
      {{{SlotKind::kArena, 0, cache_.get(), 0}}, "only weights and caches"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(host_->Instantiate(program, c.bindings),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST_F(SessionMemoryTest, FreedBuffer_InvalidatesItsInstances) {
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(1));
  ASSERT_OK(Launch(instance, {}));
  host_->InvalidateBuffer(cache_.get());
  cache_.reset();
  EXPECT_THAT(Launch(instance, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("does not exist")));
}

TEST_F(SessionMemoryTest, TablesAndInstances_AreLimited) {
  ProgramLimits limits;
  limits.table_bytes = 16;
  limits.instances = 1;
  Start(nullptr, limits);
  EXPECT_THAT(Instantiate(5), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("20 bytes")));
  ASSERT_OK(Instantiate(4));
  EXPECT_THAT(Instantiate(3),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 instances")));
}

TEST_F(SessionMemoryTest, NotEnoughMemory_IsAnErrorAndTheSessionGoesOn) {
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, Instantiate(1));
  Program program = ShowTable(1);
  program.slots[0].bytes = int64_t{1} << 40;  // the arena
  ASSERT_OK_AND_ASSIGN(const ProgramId id, host_->Install(std::move(program)));
  EXPECT_THAT(host_->Instantiate(id, {{SlotKind::kCache, 0, cache_.get(), 0}}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cannot allocate")));
  ASSERT_OK(Launch(instance, {{0, 0, 3}}));
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{3}));
}

TEST_F(SessionMemoryTest, MemoryOfTheLastInstance_IsFreed) {
  const int64_t before = fake_->used_bytes();
  Program program = ShowTable(1);
  program.slots[0].bytes = int64_t{1} << 20;  // the arena
  ASSERT_OK_AND_ASSIGN(const ProgramId id, host_->Install(program));
  ASSERT_OK_AND_ASSIGN(const InstanceId instance,
                       host_->Instantiate(id, {{SlotKind::kCache, 0, cache_.get(), 0}}));
  EXPECT_GE(fake_->used_bytes(), before + program.slots[0].bytes);
  ASSERT_OK(host_->Release(instance));
  EXPECT_LT(fake_->used_bytes(), before + program.slots[0].bytes);
  // And it works again, with what the tables held.
  ASSERT_OK_AND_ASSIGN(const InstanceId again, Instantiate(1));
  ASSERT_OK(Launch(again, {{0, 0, 3}}));
  EXPECT_EQ(TableAfter(1), (std::vector<int32_t>{3}));
}

}  // namespace
}  // namespace weft
