// Programs that reuse memory: soundly, and too early.
#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr NodeId kA{1}, kB{2}, kSum{3}, kRows{4};
constexpr int64_t kBytes = 128;

// a = x * 2, b = x * 3, sum = a + b, rows = sum of rows of sum; each in 128 bytes of arena 0.
Program FourResults() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 4, 1, 1}, "x");
  const NodeId a = builder.Name(builder.Scale(x, 2), "a");
  const NodeId b = builder.Name(builder.Scale(x, 3), "b");
  const NodeId sum = builder.Name(builder.Add(a, b), "sum");
  builder.MarkOutput(builder.Name(builder.Make(Op::kCumSum, {}, {sum}), "rows"));
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0, 0}, 1);
}

struct PlaceCase {
  NodeId node;
  int64_t offset;
  const char* error;  // null: it is sound
};

TEST(MemoryOwners, Reuse_IsSoundOnlyAfterTheLastReader) {
  // Offsets as compiled: a 0, b 128, sum 256, rows 384.
  const PlaceCase cases[] = {
      {kRows, 0, nullptr},      // a and b are done
      {kRows, 64, nullptr},     // over half of each
      {kSum, 0, nullptr},       // in place over a
      {kSum, kBytes, nullptr},  // in place over b
      {kSum, 64, "node 3 (add 'sum'): writes over its source 1"},
      {kSum, kBytes + 64, "node 3 (add 'sum'): writes over its source 2"},
      {kRows, 2 * kBytes, "node 4 (cumsum 'rows'): writes over its source 3"},
      {kB, 0, "node 3 (add 'sum'): source 1 is overwritten by node 2 (scale 'b')"},
      {kB, 64, "node 3 (add 'sum'): source 1 is overwritten by node 2 (scale 'b')"},
      {kA, kBytes, "node 3 (add 'sum'): source 1 is overwritten by node 2 (scale 'b')"},
  };
  ASSERT_OK(VerifyProgram(FourResults()));
  for (const PlaceCase& c : cases) {
    Program program = FourResults();
    program.places[Index(c.node)].offset = c.offset;
    if (c.error == nullptr) {
      EXPECT_OK(VerifyProgram(program)) << Index(c.node) << " at " << c.offset;
    } else {
      EXPECT_THAT(VerifyProgram(program),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.error)));
    }
  }
}

TEST(MemoryOwners, OverwrittenOutput_IsRefused) {
  Program program = FourResults();
  program.outputs.push_back({kA});
  EXPECT_OK(VerifyProgram(program));
  program.places[Index(kRows)].offset = 64;
  EXPECT_THAT(VerifyProgram(program),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output 1, node 1 (scale 'a'): is overwritten by node 4")));
}

// Device 1 copies `a`; then device 0 writes `b` over it.
TEST(MemoryOwners, ReaderOnAnotherDevice_MustBeWaitedFor) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 4, 1, 1}, "x");
  const NodeId a = builder.Name(builder.Scale(x, 2), "a");
  const NodeId replica = builder.Copy(a, DType::kF32);
  const NodeId b = builder.Name(builder.Scale(x, 3), "b");
  builder.MarkOutput(replica);
  builder.MarkOutput(b);
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0, 1, 0}, 2);
  ASSERT_OK(VerifyProgram(program));
  program.places[Index(b)] = program.places[Index(a)];
  EXPECT_THAT(VerifyProgram(program),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overwritten by node 3")));
  // A wait for an event that device 1 records after its copy makes it sound; before it, it does
  // not. Streams: [compute a, record 0, compute b], [wait 0, copy].
  program.event_count = 2;
  std::vector<Command>& first = program.streams[0].commands;
  std::vector<Command>& second = program.streams[1].commands;
  ASSERT_EQ(first.size(), 3u);
  first.insert(first.begin() + 2, Command(WaitCommand{1}));
  second.insert(second.begin() + 1, Command(RecordCommand{1}));
  EXPECT_FALSE(VerifyProgram(program).ok());
  std::swap(second[1], second[2]);
  EXPECT_OK(VerifyProgram(program));
}

}  // namespace
}  // namespace weft
