#include "tests/unit/common/program/hostile_program.h"

#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"

namespace weft {

void CheckHostile(Program (*make)(), absl::Span<const HostileCase> cases) {
  ASSERT_OK(VerifyProgram(make()));
  for (const HostileCase& c : cases) {
    SCOPED_TRACE(c.what);
    Program program = make();
    c.change(program);
    if (c.error == nullptr) {
      EXPECT_OK(VerifyProgram(program));
    } else {
      EXPECT_THAT(VerifyProgram(program),
                  StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(c.error)));
    }
  }
}

NodeId Named(const Program& program, std::string_view name) {
  for (int32_t i = 0; i < program.graph.size(); ++i) {
    if (program.graph.node(NodeId{i}).name == name) return NodeId{i};
  }
  return kNoNode;
}

SlotPlace& PlaceOf(Program& program, std::string_view name) {
  return program.places[static_cast<size_t>(Index(Named(program, name)))];
}

Program SharingProgram() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 2, 1, 1}, "x");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {2, 1, 1, 1}, "ids");
  const NodeId cache = builder.Leaf(LeafKind::kCache, 0, DType::kF32, {8, 4, 1, 1}, "cache");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId store = builder.Name(builder.Make(Op::kSetRows, {}, {cache, doubled, ids}), "store");
  builder.MarkOutput(builder.Name(builder.SumRows(store), "sum"));
  builder.MarkOutput(builder.Name(builder.Scale(doubled, 1, 1), "plus"));
  builder.Name(builder.Scale(x, 0.5f), "half");
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0, 1, 1, 2, 2}, SharingMachine());
}

}  // namespace weft
