// Ops with a state along the tokens (spec G.0, G.13; decision 14).
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluators.h"

namespace weft::reference {
namespace {

// One value head of one sequence.
struct Head {
  int64_t head;
  int64_t sequence;
  int64_t valid;              // tokens that count
  std::vector<double> state;  // S[i][j] at i * h + j
};

// Advances the state by token `t` and writes the token's output.
void Step(const Operands& operands, int64_t t, Head& at, float* output) {
  const HostTensor& key = operands.source(1);
  const int64_t h = key.extent(0);
  const int64_t key_head = at.head % key.extent(1);
  const HostTensor& decay = operands.source(3);
  for (int64_t i = 0; i < h; ++i) {
    const int64_t place = decay.extent(0) == 1 ? 0 : i;
    const double factor = std::exp(decay.F32(place, at.head, t, at.sequence));
    for (int64_t j = 0; j < h; ++j) at.state[static_cast<size_t>(i * h + j)] *= factor;
  }
  const double beta = operands.source(4).F32(0, at.head, t, at.sequence);
  for (int64_t j = 0; j < h; ++j) {
    double predicted = 0;
    for (int64_t i = 0; i < h; ++i) {
      predicted += at.state[static_cast<size_t>(i * h + j)] * key.F32(i, key_head, t, at.sequence);
    }
    const double delta = beta * (operands.source(2).F32(j, at.head, t, at.sequence) - predicted);
    double sum = 0;
    for (int64_t i = 0; i < h; ++i) {
      double& cell = at.state[static_cast<size_t>(i * h + j)];
      cell += key.F32(i, key_head, t, at.sequence) * delta;
      sum += cell * operands.source(0).F32(i, key_head, t, at.sequence);
    }
    output[j] = static_cast<float>(sum / std::sqrt(static_cast<double>(h)));
  }
}

}  // namespace

absl::Status SsmConv(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& w = operands.source(1);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t t, int64_t s, int64_t) {
    for (int64_t channel = 0; channel < y.extent(0); ++channel) {
      double sum = 0;
      for (int64_t i = 0; i < w.extent(0); ++i) {
        sum += static_cast<double>(x.F32(t + i, channel, s)) * w.F32(i, channel);
      }
      y.F32(channel, t, s) = static_cast<float>(sum);
    }
  });
  return absl::OkStatus();
}

// Tokens from a sequence's valid count on are padding: output zero, state as it was.
absl::Status GatedDeltaNet(const Operands& operands) {
  const HostTensor& v = operands.source(2);
  const HostTensor& initial = operands.source(5);
  const auto [h, heads, tokens, sequences] = v.layout.ne;
  // The result is packed: outputs [h, heads, tokens, sequences], then states [h, h, heads,
  // sequences] with i fastest.
  auto* outputs = reinterpret_cast<float*>(operands.result.data);
  float* states = outputs + ElementCount(v.layout);
  Head at{0, 0, 0, std::vector<double>(static_cast<size_t>(h * h))};
  for (at.sequence = 0; at.sequence < sequences; ++at.sequence) {
    at.valid = operands.has_source(6) ? operands.source(6).I32(at.sequence) : tokens;
    RETURN_IF_ERROR(CheckIndex("valid count", at.valid, tokens + 1));
    for (at.head = 0; at.head < heads; ++at.head) {
      for (int64_t i = 0; i < h * h; ++i) {
        at.state[static_cast<size_t>(i)] = initial.F32(i / h, i % h, at.head, at.sequence);
      }
      for (int64_t t = 0; t < tokens; ++t) {
        float* output = outputs + ((at.sequence * tokens + t) * heads + at.head) * h;
        if (t < at.valid) {
          Step(operands, t, at, output);
        } else {
          for (int64_t j = 0; j < h; ++j) output[j] = 0;
        }
      }
      float* stored = states + (at.sequence * heads + at.head) * h * h;
      for (int64_t i = 0; i < h * h; ++i) {
        stored[(i % h) * h + i / h] = static_cast<float>(at.state[static_cast<size_t>(i)]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::reference
