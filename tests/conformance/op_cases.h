// The case table: every op over random shapes, with one element, odd sizes, broadcasts, views,
// empty tensors and all types.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/conformance/op_case.h"

namespace weft {

std::vector<OpCase> ElementwiseCases(uint64_t seed);
std::vector<OpCase> RowCases(uint64_t seed);
std::vector<OpCase> CandidateCases(uint64_t seed);
std::vector<OpCase> MoveCases(uint64_t seed);
std::vector<OpCase> ProductCases(uint64_t seed);
std::vector<OpCase> AttentionCases(uint64_t seed);
std::vector<OpCase> RecurrentCases(uint64_t seed);

// All of them.
std::vector<OpCase> AllOpCases(uint64_t seed);

// A case of paged attention.
struct AttentionShape {
  int64_t head = 16;
  int64_t value_head = 16;  // of the V pages, or of the prefix
  int64_t heads = 2;
  int64_t kv_heads = 1;
  std::vector<int32_t> positions = {5};  // one per token, -1 for padding
  int64_t sequences = 1;                 // token i is of sequence i % sequences
  int64_t pages_per_sequence = 2;
  DType keys = DType::kF32;
  DType values = DType::kF32;
  bool prefix = false;  // MLA
  bool sinks = false;
  bool slopes = false;
  PagedAttentionAttributes attributes = {};
};
OpCase AttentionCase(std::string name, const AttentionShape& shape, uint64_t seed);

}  // namespace weft
