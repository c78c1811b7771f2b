// What samplers draw against closed-form distributions, by chi-square with a stated seed.
#include <cmath>
#include <map>

#include "coordinator/sampling/sampler.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

constexpr int kDraws = 20000;
const std::vector<float> kLogits = {2.f, 1.f, 0.f, -1.f};

SamplerOptions Bare() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = TestSeed(11);
  return options;
}

std::vector<double> SoftmaxOf(std::vector<double> logits) {
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x);
  for (double& x : logits) x /= sum;
  return logits;
}

// The chance of each token is `p`; 25 is far beyond the 99.99 % point of 3 degrees of freedom
// (21.1).
void ExpectDraws(const SamplerOptions& options, const std::vector<double>& p) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const int32_t token, sampler.Sample(kLogits));
    ++counts[token];
  }
  double chi = 0;
  for (int i = 0; i < 4; ++i) {
    const double expected = p[static_cast<size_t>(i)] * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i;
    } else {
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  EXPECT_LT(chi, 25.0);
}

TEST(Distribution, Plain_IsTheSoftmax) { ExpectDraws(Bare(), SoftmaxOf({2, 1, 0, -1})); }

TEST(Distribution, Temperature_DividesLogits) {
  SamplerOptions options = Bare();
  options.temperature = 2;
  ExpectDraws(options, SoftmaxOf({1, 0.5, 0, -0.5}));
}

TEST(Distribution, Truncated_IsRenormalised) {
  const double never = -INFINITY;
  SamplerOptions options = Bare();
  options.top_k = 3;
  ExpectDraws(options, SoftmaxOf({2, 1, 0, never}));
  options = Bare();
  options.top_p = 0.7f;
  ExpectDraws(options, SoftmaxOf({2, 1, never, never}));
  options = Bare();
  options.min_p = 0.1f;  // e^-2 = .135 is in, e^-3 = .05 out
  ExpectDraws(options, SoftmaxOf({2, 1, 0, never}));
  options = Bare();
  options.typical_p = 0.85f;  // 1, then 0
  ExpectDraws(options, SoftmaxOf({2, 1, never, never}));
  options = Bare();
  options.top_n_sigma = 1;
  ExpectDraws(options, SoftmaxOf({2, 1, never, never}));
}

// Half of the time the first is excluded; that draw says nothing about the other.
TEST(Distribution, Xtc_MixesTwoDistributions) {
  SamplerOptions options = Bare();
  options.xtc_probability = 0.5f;
  options.xtc_threshold = 0.2f;
  const std::vector<double> all = SoftmaxOf({2, 1, 0, -1});
  const std::vector<double> less = SoftmaxOf({-INFINITY, 1, 0, -1});
  std::vector<double> mixed;
  for (size_t i = 0; i < 4; ++i) mixed.push_back((all[i] + less[i]) / 2);
  ExpectDraws(options, mixed);
}

TEST(Distribution, BiasAndPenalty_MoveLogits) {
  SamplerOptions options = Bare();
  options.logit_bias = {{3, 2.f}, {0, -1.f}, {0, -0.5f}};
  ExpectDraws(options, SoftmaxOf({0.5, 1, 0, 1}));
}

// The temperature of 1 +- 0.5 at .6835034 of the largest entropy is 1.1835034.
TEST(Distribution, DynamicTemperature_DividesLogits) {
  SamplerOptions options = Bare();
  options.dynatemp_range = 0.5f;
  constexpr double kT = 1.1835034;
  ExpectDraws(options, SoftmaxOf({2 / kT, 1 / kT, 0, -1 / kT}));
}

// With eta 0 mu stays 2 tau = 3 bits: tokens 0 and 1.
TEST(Distribution, Mirostat2_CutsAtMu) {
  SamplerOptions options = Bare();
  options.mirostat = Mirostat::kVersion2;
  options.mirostat_tau = 1.5f;
  options.mirostat_eta = 0;
  ExpectDraws(options, SoftmaxOf({2, 1, -INFINITY, -INFINITY}));
}

// The mean surprise comes near to tau where the distribution allows it.
TEST(Distribution, Mirostat_ApproachesItsSurprise) {
  Random noise(TestSeed(12));
  std::vector<float> logits(2000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(-std::log(static_cast<double>(i + 1)) + 0.1 * noise.Normal());
  }
  for (const Mirostat version : {Mirostat::kVersion1, Mirostat::kVersion2}) {
    SamplerOptions options = Bare();
    options.mirostat = version;
    options.mirostat_tau = 4;
    Sampler sampler(options);
    double bits = 0;
    std::map<int32_t, int> counts;
    constexpr int kSteps = 3000;
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_OK_AND_ASSIGN(const int32_t token, sampler.Sample(logits));
      ++counts[token];
    }
    // Entropy of what was drawn, which renormalised surprise is about.
    for (const auto& [id, count] : counts) {
      bits -= count * std::log2(static_cast<double>(count) / kSteps) / kSteps;
    }
    EXPECT_NEAR(bits, 4, 0.3);
  }
}

}  // namespace
}  // namespace weft
