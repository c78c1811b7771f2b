// A golden model folder: model.gguf, cases.json, logits (see the README that came with them: NMSE
// against the reference's logits and against a double-precision evaluation, greedy tokens with
// margins).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace weft {

struct GoldenCase {
  std::string name;
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // reference, [positions][n_vocab]
  std::vector<float> exact;   // double precision rounded to F32
  std::vector<int32_t> greedy;
  std::vector<double> margins;
};

struct GoldenModel {
  std::string name;
  std::string model_path;
  int64_t n_vocab = 0;
  int64_t context = 512;
  double tol_nmse = 0;
  double tol_exact = 0;
  double greedy_margin = 0;
  double nmse_fa_vs_nofa = 0;
  std::vector<GoldenCase> cases;
};

// Reads a folder; throws std::runtime_error if it is not one (test code only).
GoldenModel ReadGoldenModel(const std::string& folder);

// sum((x - reference)^2) / sum(reference^2); infinity if a value is not finite or the sizes differ.
double NormalizedError(absl::Span<const float> x, absl::Span<const float> reference);

// Empty if the tokens agree wherever the margin is above `least_margin`; after a permitted
// difference nothing is compared.
std::string CompareGreedy(absl::Span<const int32_t> tokens, absl::Span<const int32_t> reference,
                          absl::Span<const double> margins, double least_margin);

// tests/data, and the folder of golden data that is not in the repository ("" if there is none).
std::string TestDataFolder();
std::string GoldenFolder();

}  // namespace weft
