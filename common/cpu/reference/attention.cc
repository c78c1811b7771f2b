// Rotary embedding, stores into KV pages and attention over them (spec G.0, G.1; decision 12).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluators.h"
#include "common/cpu/reference/paged_attention_sources.h"
#include "common/cpu/reference/rope_angles.h"
#include "common/graph/attention_heads.h"

namespace weft::reference {
namespace {

// Elements of pair i in a row.
struct Pair {
  int64_t first;
  int64_t second;
};

Pair PairOf(const RopeAttributes& attributes, int64_t pair) {
  if (attributes.kind == RopeKind::kAdjacent) return {2 * pair, 2 * pair + 1};
  return {pair, pair + attributes.dimensions / 2};
}

// The keys that one query sees: their scores, then their weights.
struct Visible {
  int64_t first = 0;  // absolute position of scores[0]
  std::vector<double> scores;
};

// Fills `visible` with the scores of head `head` of token `token`.
absl::Status Scores(const Operands& operands, const AttentionSources& from, int64_t token,
                    int64_t head, Visible& visible) {
  const auto& attributes = operands.As<PagedAttentionAttributes>();
  const HostTensor& q = operands.source(0);
  const int64_t position = operands.source(from.positions).I32(token);
  const int64_t kv_head =
      AttentionHeads(attributes, q.extent(1), operands.source(1).extent(2)).KvHead(head);
  visible.first = FirstVisible(attributes, position);
  visible.scores.clear();
  std::vector<float> key;
  for (int64_t p = visible.first; p <= position; ++p) {
    RETURN_IF_ERROR(ReadPagedRow(operands, from, operands.source(1), token, kv_head, p, key));
    double score = 0;
    for (int64_t i = 0; i < q.extent(0); ++i) {
      score += static_cast<double>(q.F32(i, head, token)) * key[static_cast<size_t>(i)];
    }
    score *= attributes.scale;
    if (attributes.softcap != 0) {
      score = attributes.softcap * std::tanh(score / attributes.softcap);
    }
    if (attributes.has_slopes) {
      score += operands.source(from.slopes).F32(head) * static_cast<double>(p - position);
    }
    visible.scores.push_back(score);
  }
  return absl::OkStatus();
}

// Turns scores into weights that sum to 1 (to less where there is a sink).
void Normalise(const Operands& operands, const AttentionSources& from, int64_t head,
               std::vector<double>& scores) {
  const bool has_sinks = operands.As<PagedAttentionAttributes>().has_sinks;
  const double sink =
      has_sinks ? operands.source(from.sinks).F32(head) : -std::numeric_limits<double>::infinity();
  double maximum = sink;
  for (const double score : scores) maximum = std::max(maximum, score);
  double sum = has_sinks ? std::exp(sink - maximum) : 0;
  for (double& score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  for (double& score : scores) score /= sum;
}

absl::Status AttendHead(const Operands& operands, const AttentionSources& from, int64_t token,
                        int64_t head) {
  const HostTensor& y = operands.result;
  std::vector<double> sum(static_cast<size_t>(y.extent(0)), 0.0);
  if (operands.source(from.positions).I32(token) >= 0) {
    Visible visible;
    RETURN_IF_ERROR(Scores(operands, from, token, head, visible));
    Normalise(operands, from, head, visible.scores);
    const HostTensor& pages = operands.source(from.values);
    const int64_t kv_head = AttentionHeads(operands.As<PagedAttentionAttributes>(),
                                           operands.source(0).extent(1), pages.extent(2))
                                .KvHead(head);
    std::vector<float> value;
    for (size_t i = 0; i < visible.scores.size(); ++i) {
      RETURN_IF_ERROR(ReadPagedRow(operands, from, pages, token, kv_head,
                                   visible.first + static_cast<int64_t>(i), value));
      for (size_t e = 0; e < sum.size(); ++e) sum[e] += visible.scores[i] * value[e];
    }
  }
  for (size_t e = 0; e < sum.size(); ++e) {
    y.F32(static_cast<int64_t>(e), head, token) = static_cast<float>(sum[e]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Rope(const Operands& operands) {
  const auto& attributes = operands.As<RopeAttributes>();
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const RopeAngles angles(attributes);
  for (int64_t t = 0; t < x.extent(2); ++t) {
    for (int64_t head = 0; head < x.extent(1); ++head) {
      for (int64_t pair = 0; pair < attributes.dimensions / 2; ++pair) {
        const int64_t place = angles.PositionIndex(pair) * x.extent(2) + t;
        const double divisor = operands.has_source(2) ? operands.source(2).F32(pair) : 1.0;
        const double angle = operands.source(1).I32(place) * angles.Frequency(pair, divisor);
        const double cosine = angles.magnitude() * std::cos(angle);
        const double sine = angles.magnitude() * std::sin(angle);
        const auto [first, second] = PairOf(attributes, pair);
        const double a = x.F32(first, head, t);
        const double b = x.F32(second, head, t);
        y.F32(first, head, t) = static_cast<float>(a * cosine - b * sine);
        y.F32(second, head, t) = static_cast<float>(a * sine + b * cosine);
      }
      for (int64_t i = attributes.dimensions; i < x.extent(0); ++i) {
        y.F32(i, head, t) = x.F32(i, head, t);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status KvStore(const Operands& operands) {
  const HostTensor& pages = operands.result;
  const HostTensor& rows = operands.source(1);
  std::vector<float> row;
  for (int64_t t = 0; t < rows.extent(2); ++t) {
    const int64_t slot = operands.source(2).I32(t);
    RETURN_IF_ERROR(CheckIndex("slot", slot, pages.extent(3) * kPageTokens));
    for (int64_t head = 0; head < rows.extent(1); ++head) {
      RETURN_IF_ERROR(ReadRow(rows, head, t, 0, row));
      RETURN_IF_ERROR(WriteRow(pages, slot % kPageTokens, head, slot / kPageTokens, row));
    }
  }
  return absl::OkStatus();
}

absl::Status PagedAttention(const Operands& operands) {
  const AttentionSources from(operands.As<PagedAttentionAttributes>());
  for (int64_t t = 0; t < operands.result.extent(2); ++t) {
    for (int64_t head = 0; head < operands.result.extent(1); ++head) {
      RETURN_IF_ERROR(AttendHead(operands, from, t, head));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::reference
