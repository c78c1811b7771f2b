// What `weft inspect` says about a model, before it is put into words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/gguf/gguf_file.h"

namespace weft {

struct InspectTypeSum {
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
};

// Whether weft can run the model, as far as its headers tell.
struct InspectSupport {
  std::string architecture;  // empty if the file names none
  bool architecture_supported = false;
  std::vector<DType> types_without_codec;  // that tensors have
  std::string tokenizer_model;             // empty: none
  std::string tokenizer_pre;               // empty: none
  int64_t token_count = 0;
  bool chat_template = false;
  std::vector<std::string> obstacles;  // why weft cannot run it; one line each, empty if it can
};

// What the data check says about one tensor.
struct InspectProblem {
  std::string tensor;
  std::string problem;
};

struct InspectReport {
  std::map<DType, InspectTypeSum> types;
  InspectTypeSum total;
  int64_t file_bytes = 0;  // of all parts
  InspectSupport support;
};

InspectReport MakeInspectReport(const GgufFile& file,
                                absl::Span<const std::string> supported_architectures);

// Reads all tensor data; gives the tensors whose scales or values are not finite.
std::vector<InspectProblem> FindDataProblems(const GgufFile& file);

}  // namespace weft
