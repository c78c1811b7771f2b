// Checks of everything that works on F32 vectors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/common/cpu/kernels/kernel_checks.h"
#include "tests/unit/common/cpu/kernels/kernel_samples.h"

namespace weft::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 12345.0f;
constexpr int64_t kLengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 257};

std::string Text(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

// How far `got` may be from `want`: some units in the last place, and an absolute part for results
// that underflow.
struct Tolerance {
  double ulps;
  double absolute;
};
bool Near(double want, float got, Tolerance tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::fabs(want) > 3.4028235e38) return std::fabs(got) > 3.4e38 && (want > 0) == (got > 0);
  return std::fabs(got - want) <= tolerance.ulps * std::fabs(want) * 0x1p-24 + tolerance.absolute;
}

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double GeluOf(double x) {
  return x * SigmoidOf(2 * 0.79788456080286535588 * x * (1 + 0.044715 * x * x));
}

struct UnaryCase {
  UnaryFunction function;
  const char* name;
  double (*formula)(double);
  double low, high;
  Tolerance tolerance;
};
// The vector exponential is within 2 ulp where its argument is exact; functions that scale the
// argument first lose as many ulp as the argument is large (it is rounded), which the results near
// 1 hide and the small ones show.
const UnaryCase kUnaryCases[] = {
    {kUnarySilu, "silu", [](double x) { return x * SigmoidOf(x); }, -80, 80, {6, 1e-37}},
    {kUnaryGelu, "gelu", GeluOf, -8, 50, {250, 1e-36}},
    {kUnaryGeluErf,
     "gelu_erf",
     [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); },
     -5,
     50,
     {2, 1e-6}},
    {kUnaryGeluQuick,
     "gelu_quick",
     [](double x) { return x * SigmoidOf(1.702 * x); },
     -48,
     80,
     {200, 1e-36}},
    {kUnarySigmoid, "sigmoid", SigmoidOf, -80, 80, {6, 1e-37}},
    {kUnaryTanh, "tanh", [](double x) { return std::tanh(x); }, -12, 12, {6, 0}},
    {kUnaryExp, "exp", [](double x) { return std::exp(x); }, -103, 88.7, {3, 1.5e-45}},
    {kUnaryNeg, "neg", [](double x) { return -x; }, -1e30, 1e30, {0, 0}},
    {kUnaryRelu, "relu", [](double x) { return x > 0 ? x : 0; }, -10, 10, {0, 0}},
    {kUnarySoftplus,
     "softplus",
     [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); },
     -30,
     30,
     {6, 0}},
    {kUnarySqr, "sqr", [](double x) { return x * x; }, -1e15, 1e15, {1, 0}},
    {kUnarySqrt, "sqrt", [](double x) { return std::sqrt(x); }, 0, 1e30, {1, 0}},
    {kUnaryLog, "log", [](double x) { return std::log(x); }, 1e-30, 1e30, {2, 0}},
    {kUnarySin, "sin", [](double x) { return std::sin(x); }, -100, 100, {2, 0}},
    {kUnaryCos, "cos", [](double x) { return std::cos(x); }, -100, 100, {2, 0}},
};

std::string CheckUnary(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const UnaryCase& c : kUnaryCases) {
    for (const int64_t n : kLengths) {
      for (const double zoom : {1.0, 0.1, 0.001}) {
        std::vector<float> x(static_cast<size_t>(n)), y(static_cast<size_t>(n) + 1, kUntouched);
        for (float& value : x) value = static_cast<float>(random.Uniform(c.low, c.high) * zoom);
        table.unary[c.function](n, x.data(), y.data());
        for (int64_t i = 0; i < n; ++i) {
          if (!Near(c.formula(x[i]), y[i], c.tolerance)) {
            return std::string(c.name) + "(" + Text(x[i]) + ") is " + Text(y[i]) + ", not " +
                   Text(c.formula(x[i]));
          }
        }
        if (y[n] != kUntouched) return std::string(c.name) + ": wrote past the end";
        table.unary[c.function](n, x.data(), x.data());
        if (!SameBits(x.data(), y.data(), n)) return std::string(c.name) + ": in place differs";
      }
    }
    float nan[17];
    for (float& value : nan) value = NAN;
    table.unary[c.function](17, nan, nan);
    if (!std::isnan(nan[0]) || !std::isnan(nan[16])) return std::string(c.name) + ": lost a NaN";
  }
  return "";
}

struct Fixed {
  UnaryFunction function;
  float x, y;
};
std::string CheckLimits(const KernelTable& table, uint64_t) {
  constexpr Fixed kFixed[] = {
      {kUnaryExp, -kInf, 0},
      {kUnaryExp, kInf, kInf},
      {kUnaryExp, 0, 1},
      {kUnaryExp, -1e30f, 0},
      {kUnaryExp, 1e30f, kInf},
      {kUnarySilu, 1e30f, 1e30f},
      {kUnarySilu, -1e30f, 0},
      {kUnaryGelu, 1e30f, 1e30f},
      {kUnaryGelu, -1e30f, 0},
      {kUnarySigmoid, -kInf, 0},
      {kUnarySigmoid, kInf, 1},
      {kUnaryTanh, kInf, 1},
      {kUnaryTanh, -kInf, -1},
      {kUnaryTanh, 0, 0},
      {kUnaryTanh, 1e-30f, 1e-30f},
      {kUnaryGeluQuick, 1e30f, 1e30f},
      {kUnarySoftplus, 1e30f, 1e30f},
      {kUnaryRelu, -kInf, 0},
  };
  for (const Fixed& f : kFixed) {
    float y[17];
    for (float& value : y) value = f.x;
    table.unary[f.function](17, y, y);
    if (y[0] != f.y || y[16] != f.y) {
      return "unary " + std::to_string(f.function) + " of " + Text(f.x) + " is " + Text(y[0]);
    }
  }
  return "";
}

struct BinaryCase {
  const char* name;
  void (*KernelTable::*function)(int64_t, const float*, const float*, float*);
  double (*formula)(double, double);
  double ulps;
};
const BinaryCase kBinaryCases[] = {
    {"add", &KernelTable::add, [](double a, double b) { return a + b; }, 1},
    {"sub", &KernelTable::sub, [](double a, double b) { return a - b; }, 1},
    {"mul", &KernelTable::mul, [](double a, double b) { return a * b; }, 1},
    {"div", &KernelTable::div, [](double a, double b) { return a / b; }, 1},
    {"swiglu", &KernelTable::swiglu, [](double a, double b) { return a * SigmoidOf(a) * b; }, 8},
    {"geglu", &KernelTable::geglu, [](double a, double b) { return GeluOf(a) * b; }, 300},
    {"reglu", &KernelTable::reglu, [](double a, double b) { return a > 0 ? a * b : 0; }, 1},
};

std::string CheckBinary(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const BinaryCase& c : kBinaryCases) {
    for (const int64_t n : kLengths) {
      std::vector<float> a = random.Activations(n), b = random.Activations(n);
      std::vector<float> y(static_cast<size_t>(n) + 1, kUntouched);
      (table.*c.function)(n, a.data(), b.data(), y.data());
      for (int64_t i = 0; i < n; ++i) {
        if (!Near(c.formula(a[i], b[i]), y[i], {c.ulps, 1e-37})) {
          return std::string(c.name) + "(" + Text(a[i]) + ", " + Text(b[i]) + ") is " + Text(y[i]);
        }
      }
      if (y[n] != kUntouched) return std::string(c.name) + ": wrote past the end";
      std::vector<float> first = a;
      (table.*c.function)(n, first.data(), b.data(), first.data());
      (table.*c.function)(n, a.data(), b.data(), b.data());
      if (!SameBits(first.data(), y.data(), n) || !SameBits(b.data(), y.data(), n)) {
        return std::string(c.name) + ": in place differs";
      }
    }
  }
  return "";
}

std::string CheckScaling(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const int64_t n : kLengths) {
    const std::vector<float> x = random.Activations(n), up = random.Activations(n);
    std::vector<float> scaled(x.size()), clamped(x.size()), added = up, gated(x.size());
    table.scale(n, x.data(), 0.3f, -1.7f, scaled.data());
    table.clamp(n, x.data(), -0.25f, 0.5f, clamped.data());
    table.scale_add(n, x.data(), 0.3f, added.data());
    table.swiglu_oai(n, x.data(), up.data(), 1.702f, 7.0f, gated.data());
    for (int64_t i = 0; i < n; ++i) {
      const float product = x[i] * 0.3f;  // two roundings
      if (scaled[i] != product + -1.7f) return "scale of " + Text(x[i]) + " is " + Text(scaled[i]);
      if (clamped[i] != std::clamp(x[i], -0.25f, 0.5f)) return "clamp of " + Text(x[i]);
      if (added[i] != up[i] + product) return "scale_add of " + Text(x[i]);
      const double g = std::min(x[i], 7.0f);
      const double want = g * SigmoidOf(1.702f * g) * (std::clamp(up[i], -7.0f, 7.0f) + 1.0);
      if (!Near(want, gated[i], {60, 1e-6}))
        return "swiglu_oai is " + Text(gated[i]) + ", not " + Text(want);
    }
  }
  // Spec M.5.
  const float gate[3] = {1, 10, -3}, up[3] = {2, -9, 0.5f};
  const double want[3] = {2.5373873, -41.9997188, -.0271070};
  float got[3];
  table.swiglu_oai(3, gate, up, 1.702f, 7.0f, got);
  for (int i = 0; i < 3; ++i) {
    if (!(std::fabs(got[i] - want[i]) < 1e-5)) return "swiglu_oai is " + Text(got[i]);
  }
  float nan = NAN;
  table.clamp(1, &nan, 0, 1, &nan);
  if (!std::isnan(nan)) return "clamp lost a NaN";
  return "";
}

std::string CheckReductions(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const int64_t n : kLengths) {
    const std::vector<float> x = random.Activations(n), w = random.Activations(n);
    std::vector<float> y(static_cast<size_t>(n) + 1, kUntouched), plain(y);
    double squares = 0, dot = 0, size = 0, sum = 0;
    float largest = -kInf;
    for (int64_t i = 0; i < n; ++i) {
      squares += static_cast<double>(x[i]) * x[i];
      dot += static_cast<double>(x[i]) * w[i];
      size += std::fabs(static_cast<double>(x[i]) * w[i]);
      largest = std::max(largest, x[i]);
    }
    table.rms_norm(n, x.data(), w.data(), 1e-5f, y.data());
    table.rms_norm(n, x.data(), nullptr, 1e-5f, plain.data());
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5f);
    for (int64_t i = 0; i < n; ++i) {
      if (!Near(x[i] * factor * w[i], y[i], {4, 1e-37}))
        return "rms_norm with weight, n=" + Text(n);
      if (!Near(x[i] * factor, plain[i], {3, 1e-37})) return "rms_norm, n=" + Text(n);
    }
    if (y[n] != kUntouched) return "rms_norm wrote past the end";
    if (table.max(n, x.data()) != largest) return "max, n=" + Text(n);
    const double allowed = size * 0x1p-23 * (8 + static_cast<double>(n) / 16);
    if (!(std::fabs(table.dot(n, x.data(), w.data()) - dot) <= allowed)) return "dot, n=" + Text(n);
    const float maximum = n == 0 ? 0 : largest;
    const float got = table.exp_sum(n, x.data(), maximum, y.data());
    for (int64_t i = 0; i < n; ++i) {
      // The difference is rounded before the exponential.
      const double want = std::exp(static_cast<double>(x[i] - maximum));
      sum += want;
      if (!Near(want, y[i], {3, 1e-45})) return "exp_sum at " + Text(x[i] - maximum);
    }
    if (!Near(sum, got, {20, 0})) return "exp_sum is " + Text(got) + ", not " + Text(sum);
    if (y[n] != kUntouched) return "exp_sum wrote past the end";
  }
  return "";
}

std::string CheckMasked(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const int64_t n : {1, 16, 17, 40}) {
    std::vector<float> x(static_cast<size_t>(n), -kInf), y(x.size(), kUntouched);
    if (table.max(n, x.data()) != -kInf) return "max of -infinity";
    if (table.exp_sum(n, x.data(), -kInf, y.data()) != 0) return "exp_sum of a masked row";
    for (const float value : y) {
      if (value != 0) return "exp of -infinity is not 0";
    }
    const int64_t at = random.Int(0, n - 1);
    x[at] = 1000;
    if (table.exp_sum(n, x.data(), 1000, y.data()) != 1 || y[at] != 1)
      return "exp_sum of one value";
    x[at] = NAN;
    if (!std::isnan(table.max(n, x.data()))) return "max lost a NaN";
    if (!std::isnan(table.exp_sum(n, x.data(), 0, y.data()))) return "exp_sum lost a NaN";
    if (!std::isnan(table.dot(n, x.data(), x.data()))) return "dot lost a NaN";
  }
  return "";
}

std::string CheckRope(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const int64_t pairs : kLengths) {
    const std::vector<float> x = random.Activations(2 * pairs);
    const std::vector<float> c = random.Activations(pairs), s = random.Activations(pairs);
    for (const bool half : {false, true}) {
      std::vector<float> y(static_cast<size_t>(2 * pairs) + 1, kUntouched), in_place = x;
      const auto rope = half ? table.rope_half : table.rope_adjacent;
      rope(pairs, x.data(), c.data(), s.data(), y.data());
      rope(pairs, in_place.data(), c.data(), s.data(), in_place.data());
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t a = half ? i : 2 * i, b = half ? i + pairs : 2 * i + 1;
        const double x0 = x[a], x1 = x[b];
        if (!(std::fabs(y[a] - (x0 * c[i] - x1 * s[i])) <= 1e-5) ||
            !(std::fabs(y[b] - (x0 * s[i] + x1 * c[i])) <= 1e-5)) {
          return std::string(half ? "rope_half" : "rope_adjacent") + ", pairs=" + Text(pairs);
        }
      }
      if (y[2 * pairs] != kUntouched) return "rope wrote past the end";
      if (!SameBits(y.data(), in_place.data(), 2 * pairs)) return "rope in place differs";
    }
  }
  return "";
}

}  // namespace

std::vector<KernelCheck> VectorChecks() {
  return {{"Unary", CheckUnary},     {"Limits", CheckLimits},         {"Binary", CheckBinary},
          {"Scaling", CheckScaling}, {"Reductions", CheckReductions}, {"Masked", CheckMasked},
          {"Rope", CheckRope}};
}

}  // namespace weft::cpu
