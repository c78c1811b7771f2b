// Sampling from candidates chooses what sampling from all logits chooses, or says that it cannot
// know; rows are checked like an enemy's; rows of parts make the row of the whole.
#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "common/graph/candidate_layout.h"
#include "common/graph/graph_builder.h"
#include "coordinator/sampling/candidate_row.h"
#include "coordinator/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/host_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The packed row that a device would return of these logits, by the oracle.
std::vector<float> Pack(const std::vector<float>& logits, int64_t k, int64_t first_id,
                        const std::vector<int32_t>& changed) {
  GraphBuilder builder;
  const auto n = static_cast<int64_t>(logits.size());
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {n, 1, 1, 1}, "logits");
  const auto count = static_cast<int64_t>(changed.size());
  const NodeId ids = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {count, 1, 1, 1}, "changed");
  const NodeId row =
      builder.SampleCandidates(x, ids, static_cast<int32_t>(k), static_cast<int32_t>(first_id));
  const absl::StatusOr<Graph> graph = std::move(builder).Finish();
  EXPECT_OK(graph);
  HostGraph host(*graph);
  host.SetF32(x, logits);
  host.SetI32(ids, changed);
  EXPECT_OK(host.Run());
  return host.F32(row);
}

absl::StatusOr<CandidateRow> RowOf(const std::vector<float>& logits, int64_t k,
                                   const std::vector<int32_t>& changed, int64_t first_id = 0) {
  CandidateRequest request;
  request.k = k;
  request.padded_changed = static_cast<int64_t>(changed.size());
  request.first_id = first_id;
  request.ids = static_cast<int64_t>(logits.size());
  request.changed = changed;
  return ReadCandidateRow(request, Pack(logits, k, first_id, changed));
}

std::vector<float> RandomLogits(Random& random, int64_t n) {
  std::vector<float> logits;
  const auto kind = random.Between(0, 9);
  const double scale = random.Between(0, 1) == 0 ? 1.5 : 8;
  for (int64_t i = 0; i < n; ++i) {
    auto x = static_cast<float>(scale * random.Normal());
    if (kind <= 2) x = std::round(x);
    if (kind == 3 && random.Between(0, 3) == 0) x = -kInfinity;
    if (kind == 4 && random.Between(0, n) == 0) x = kInfinity;
    if (kind == 5 && random.Between(0, 3 * n) == 0) x = std::nanf("");
    logits.push_back(x);
  }
  return logits;
}

template <typename T>
T Pick(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.Between(0, static_cast<int64_t>(values.size()) - 1)];
}

// Mostly off, as with users.
template <typename T>
T Seldom(Random& random, T off, std::initializer_list<T> values) {
  return random.Between(0, 4) == 0 ? Pick(random, values) : off;
}

void AddRarerOptions(Random& random, int64_t n, SamplerOptions& options) {
  options.typical_p = Seldom(random, 1.f, {0.f, 0.2f, 0.95f});
  options.top_n_sigma = Seldom(random, -1.f, {0.5f, 2.f});
  options.xtc_probability = Seldom(random, 0.f, {0.5f, 1.f});
  options.xtc_threshold = Pick(random, {0.05f, 0.1f, 0.5f, 0.6f});
  options.dynatemp_range = Seldom(random, 0.f, {0.4f, 3.f});
  options.dynatemp_exponent = Pick(random, {0.5f, 1.f, 2.f});
  options.mirostat = Seldom(random, Mirostat::kOff, {Mirostat::kVersion1, Mirostat::kVersion2});
  options.mirostat_tau = Pick(random, {0.f, 3.f, 5.f});
  options.dry.multiplier = Seldom(random, 0.f, {0.8f, 5.f});
  options.dry.allowed_length = Pick(random, {0, 1, 2});
  options.dry.window = Pick(random, {-1, 0, 6});
  if (random.Between(0, 1) == 0) {
    DryBreakers breakers;
    breakers.Add({1});
    breakers.Add({2, 3});
    options.dry_breakers = std::make_shared<const DryBreakers>(breakers);
  }
  options.min_keep = Seldom(random, 1, {0, 3, 20, 500});
  for (int64_t i = Seldom<int64_t>(random, 0, {1, 3}); i > 0; --i) {
    options.logit_bias.push_back({static_cast<int32_t>(random.Between(0, n + 1)),
                                  Pick(random, {-kInfinity, -2.f, 5.f, 100.f})});
  }
}

SamplerOptions UsualOptions(Random& random) {
  SamplerOptions options;
  options.temperature = Pick(random, {0.f, 0.8f, 1.f, 2.f});
  options.top_k = Pick(random, {0, 1, 5, 40, 1000});
  options.top_p = Pick(random, {0.f, 0.3f, 0.9f, 0.95f, 1.f});
  options.min_p = Pick(random, {0.f, 0.05f, 0.5f});
  options.repeat_penalty = Pick(random, {1.f, 1.3f, 0.7f});
  options.frequency_penalty = Pick(random, {0.f, 0.5f, -0.5f});
  options.presence_penalty = Pick(random, {0.f, 1.f, -1.f});
  options.penalty_window = Pick(random, {0, 4, 64, -1});
  options.seed = static_cast<uint64_t>(random.Between(0, 1000));
  return options;
}

SamplerOptions RandomOptions(Random& random, int64_t n) {
  SamplerOptions options = UsualOptions(random);
  if (random.Between(0, 2) == 0) AddRarerOptions(random, n, options);
  return options;
}

// Allows ids by a fixed mask.
class MaskFilter : public TokenFilter {
 public:
  MaskFilter(Random& random, int64_t n) : mask_(n) {
    const int64_t one_of = Pick<int64_t>(random, {1, 2, 10, 100});
    for (int64_t id = 0; id < n; ++id) {
      if (random.Between(1, one_of) == 1) mask_.Add(id);
    }
  }
  absl::StatusOr<bool> Allows(int32_t id) override { return mask_.Contains(id); }
  absl::StatusOr<TokenMask> Mask(int64_t) override { return mask_; }

 private:
  TokenMask mask_;
};

struct Counts {
  int sampled = 0;
  int refused = 0;
  int filtered = 0;
};

struct Kind {
  bool rarer = false;   // with options that need all logits more often
  bool filter = false;  // on every fourth text
};

// Both samplers go on with the same token, so that their penalties and draws stay the same.
void CompareTexts(Random& random, Kind kind, Counts& counts) {
  const int64_t n = Pick<int64_t>(random, {1, 2, 17, 100, 300});
  const int64_t k = std::min(n, Pick<int64_t>(random, {1, 8, 64}));
  const SamplerOptions options = kind.rarer ? RandomOptions(random, n) : UsualOptions(random);
  ASSERT_OK(CheckSamplerOptions(options));
  Sampler full(options), brief(options);
  MaskFilter filter(random, n);
  if (kind.filter && random.Between(0, 3) == 0) {
    full.SetFilter(&filter);
    brief.SetFilter(&filter);
    ++counts.filtered;
  }
  for (int step = 0; step < 12; ++step) {
    const std::vector<float> logits = RandomLogits(random, n);
    ASSERT_OK_AND_ASSIGN(const CandidateRow row, RowOf(logits, k, brief.ChangedIds()));
    const absl::StatusOr<int32_t> want = full.Sample(logits);
    const absl::StatusOr<std::optional<int32_t>> got = brief.SampleFrom(row);
    if (got.ok() && !got->has_value()) {
      ++counts.refused;
      // Nothing has happened: all logits give the same token.
      EXPECT_EQ(brief.Sample(logits), want);
    } else {
      ++counts.sampled;
      ASSERT_EQ(got.status(), want.status());
      if (want.ok()) {
        ASSERT_EQ(**got, *want);
      }
    }
    const auto next =
        static_cast<int32_t>(want.ok() && *want < n ? *want : random.Between(0, n - 1));
    full.Accept(next);
    brief.Accept(next);
  }
}

TEST(CandidateSampling, RandomRowsAndOptions_ChooseAsFromAllLogits) {
  Random random(TestSeed(5));
  Counts usual, rarer, filtered;
  for (uint64_t i = 0; i < TestCount(600) && !HasFatalFailure(); ++i) {
    CompareTexts(random, {false, false}, usual);
    CompareTexts(random, {true, false}, rarer);
    CompareTexts(random, {true, true}, filtered);
  }
  // Both ways are taken.
  EXPECT_GT(usual.sampled, 3 * usual.refused);
  EXPECT_GT(usual.refused, 0);
  EXPECT_GT(rarer.sampled, rarer.refused);
  EXPECT_GT(rarer.refused, 0);
  EXPECT_GT(filtered.filtered, 0);
}

// What decision 19 promises never to need all logits.
TEST(CandidateSampling, PromisedOptions_NeverAskForAllLogits) {
  Random random(TestSeed(6));
  for (int i = 0; i < 300; ++i) {
    SamplerOptions options = RandomOptions(random, 300);
    options.top_n_sigma = -1;
    options.mirostat = Mirostat::kOff;
    if (options.temperature <= 0) options.typical_p = 1;
    if (options.temperature <= 0) options.xtc_probability = 0;
    if (options.temperature > 0) options.top_k = static_cast<int32_t>(random.Between(1, 40));
    // Ids that penalties lift over the rest are placed; those that sink are no loss.
    Sampler sampler(options);
    for (int j = 0; j < 30; ++j) sampler.Accept(static_cast<int32_t>(random.Between(0, 299)));
    std::vector<float> logits(300);
    for (float& x : logits) x = static_cast<float>(3 * random.Normal());
    ASSERT_OK_AND_ASSIGN(const CandidateRow row, RowOf(logits, 40, sampler.ChangedIds()));
    ASSERT_OK_AND_ASSIGN(const std::optional<int32_t> token, sampler.SampleFrom(row));
    EXPECT_TRUE(token.has_value());
  }
}

TEST(CandidateSampling, TopP_BeyondTheCandidates_AsksForAllLogits) {
  SamplerOptions options;
  options.top_k = 0;
  options.top_p = 0.9f;
  options.min_p = 0;
  Sampler sampler(options);
  std::vector<float> logits(100, 0.0f);
  ASSERT_OK_AND_ASSIGN(const CandidateRow flat, RowOf(logits, 10, {}));
  ASSERT_OK_AND_ASSIGN(const std::optional<int32_t> none, sampler.SampleFrom(flat));
  EXPECT_FALSE(none.has_value());
  logits[70] = 20;
  ASSERT_OK_AND_ASSIGN(const CandidateRow steep, RowOf(logits, 10, {}));
  ASSERT_OK_AND_ASSIGN(const std::optional<int32_t> one, sampler.SampleFrom(steep));
  EXPECT_EQ(one, 70);
}

TEST(CandidateSampling, StaleChangedIds_AskForAllLogits) {
  SamplerOptions options;
  options.presence_penalty = 1;
  Sampler sampler(options);
  sampler.Accept(3);
  ASSERT_OK_AND_ASSIGN(const CandidateRow row, RowOf({1, 2, 3, 4, 5}, 2, {}));
  ASSERT_OK_AND_ASSIGN(const std::optional<int32_t> token, sampler.SampleFrom(row));
  EXPECT_FALSE(token.has_value());
}

TEST(CandidateSampling, BadLogits_GiveTheErrorsOfAllLogits) {
  Sampler sampler(SamplerOptions{});
  for (const std::vector<float>& logits :
       {std::vector<float>{0, 1, std::nanf(""), 2}, std::vector<float>{-kInfinity, -kInfinity}}) {
    ASSERT_OK_AND_ASSIGN(const CandidateRow row, RowOf(logits, 1, {}));
    EXPECT_EQ(sampler.SampleFrom(row).status(), sampler.Sample(logits).status());
  }
}

TEST(CandidatesFor, Options_AreCovered) {
  SamplerOptions options;
  EXPECT_EQ(CandidatesFor(options, 32000), 64);
  EXPECT_EQ(CandidatesFor(options, 50), 50);
  EXPECT_EQ(CandidatesFor(options, int64_t{1} << 21), 0);
  options.top_k = 100;
  EXPECT_EQ(CandidatesFor(options, 32000), 128);
  options.top_k = 0;
  EXPECT_EQ(CandidatesFor(options, 32000), 256);
  options.temperature = 0;
  EXPECT_EQ(CandidatesFor(options, 32000), 64);
  EXPECT_EQ(MostChangedIds(options, 4096, 32000), 0);
  options.repeat_penalty = 1.1f;
  EXPECT_EQ(MostChangedIds(options, 4096, 32000), 64);
  options.penalty_window = -1;
  EXPECT_EQ(MostChangedIds(options, 4096, 32000), 4096);
  options.dry.multiplier = 1;
  options.logit_bias = {{1, 2.f}, {2, 2.f}};
  EXPECT_EQ(MostChangedIds(options, 4096, 32000), 4096 + 1024 + 2);
  EXPECT_EQ(MostChangedIds(options, 4096, 5000), 5000);
  options.temperature = 1;
  options.typical_p = 0.5f;
  EXPECT_EQ(CandidatesFor(options, 32000), 0);
  options.top_k = 40;
  EXPECT_EQ(CandidatesFor(options, 32000), 64);
  options.top_n_sigma = 1;
  EXPECT_EQ(CandidatesFor(options, 32000), 0);
  options.top_n_sigma = -1;
  options.mirostat = Mirostat::kVersion2;
  EXPECT_EQ(CandidatesFor(options, 32000), 0);
  EXPECT_EQ(MostChangedIds(options, 4096, 32000), 2);
}

// Whatever arrives is an error or a row that keeps its promises; sampling from it does not crash.
TEST(ReadCandidateRow, DamagedWords_AreAnErrorOrARow) {
  Random random(TestSeed(7));
  int errors = 0;
  for (uint64_t i = 0; i < TestCount(3000); ++i) {
    const int64_t n = random.Between(1, 60);
    const int64_t k = random.Between(1, n);
    std::vector<int32_t> changed;
    for (int64_t c = random.Between(0, 5); c > 0; --c) {
      changed.push_back(static_cast<int32_t>(random.Between(-1, n + 1)));
    }
    std::vector<float> words = Pack(RandomLogits(random, n), k, 0, changed);
    words[random.Between(0, static_cast<int64_t>(words.size()) - 1)] =
        Pick(random, {-1.f, 0.f, 0.5f, 1.f, 2.f, 1e9f, -1e9f, kInfinity, -kInfinity, NAN});
    if (random.Between(0, 20) == 0) words.pop_back();
    const CandidateRequest request = {k, static_cast<int64_t>(changed.size()), 0, n, changed};
    const absl::StatusOr<CandidateRow> row = ReadCandidateRow(request, words);
    if (!row.ok()) {
      ++errors;
      EXPECT_THAT(row, StatusIs(absl::StatusCode::kInternal, HasSubstr("bad candidates")));
      continue;
    }
    if (row->nan_count == 0) {
      EXPECT_EQ(static_cast<int64_t>(row->best.size() + row->changed.size()) + row->rest_count, n);
      EXPECT_TRUE(std::is_sorted(row->best.begin(), row->best.end(), Before));
    }
    Sampler sampler(RandomOptions(random, n));
    const auto token = sampler.SampleFrom(*row);
    if (token.ok() && token->has_value()) {
      EXPECT_GE(**token, 0);
      EXPECT_LT(**token, n);
    }
  }
  EXPECT_GT(errors, 0);
}

TEST(MergeCandidateRows, PartsOfAVocabulary_MakeTheRowOfTheWhole) {
  Random random(TestSeed(8));
  for (int i = 0; i < 300; ++i) {
    const int64_t n = random.Between(3, 120);
    const int64_t k = random.Between(1, n);
    const std::vector<float> logits = RandomLogits(random, n);
    std::vector<int32_t> changed;
    for (int64_t c = random.Between(0, 9); c > 0; --c) {
      changed.push_back(static_cast<int32_t>(random.Between(-1, n)));
    }
    ASSERT_OK_AND_ASSIGN(CandidateRow whole, RowOf(logits, k, changed));
    std::vector<CandidateRow> parts;
    for (int64_t at = 0; at < n;) {
      const int64_t end = std::min(n, at + random.Between(1, 50));
      const std::vector<float> part(logits.begin() + at, logits.begin() + end);
      ASSERT_OK_AND_ASSIGN(parts.emplace_back(), RowOf(part, std::min(k, end - at), changed, at));
      at = end;
    }
    CandidateRow merged = MergeCandidateRows(parts, k);
    EXPECT_NEAR(merged.rest_sum, whole.rest_sum, 1e-5 * whole.rest_sum);
    merged.rest_sum = whole.rest_sum;
    EXPECT_EQ(merged, whole);
  }
}

}  // namespace
}  // namespace weft
