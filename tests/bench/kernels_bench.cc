// Speed of the matrix products on one core, as shares of limits measured in the same run: bytes
// that one core can read per second, and 8-bit integer operations per second. CPU time, best of
// several rounds: neighbours only slow it down.
//
// usage: kernels_bench [--isa NAME] [--format NAME] [--columns N] [--k N] [--mib N]
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/cpu_features.h"
#include "common/cpu/kernels/kernel_table.h"
#include "tests/support/number_argument.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::cpu {
namespace {

constexpr const char* kNames[kFormatCount] = {"F32",  "F16",    "BF16",   "Q4_0", "Q4_1", "Q5_0",
                                              "Q5_1", "Q8_0",   "Q2_K",   "Q3_K", "Q4_K", "Q5_K",
                                              "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"};
constexpr int kElements[kFormatCount] = {1,   1,   1,   32,  32,  32, 32,  32,
                                         256, 256, 256, 256, 256, 32, 256, 32};
constexpr int kBytes[kFormatCount] = {4,  2,   2,   18,  20,  22, 24,  34,
                                      84, 110, 144, 176, 210, 18, 136, 17};

struct Options {
  std::string_view isa;
  std::string_view format;
  int64_t columns = 256;
  int64_t k = 2048;
  int64_t mib = 256;
};

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Shortest time of several runs of `work`.
template <typename Work>
double BestSeconds(int rounds, Work work) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = CpuSeconds();
    work();
    best = std::min(best, CpuSeconds() - start);
  }
  return best;
}

// Memory on huge pages where the system gives them: both the limit and the kernels read it.
class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    madvise(p, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<uint8_t*>(p);
    uint64_t state = 1;
    for (size_t i = 0; i + 8 <= bytes_; i += 8) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // Keeps every half-precision pattern finite.
      const uint64_t word = state & 0xBFFFBFFFBFFFBFFFu;
      std::memcpy(data_ + i, &word, 8);
    }
  }
  ~Memory() { munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint8_t* data() const { return data_; }
  int64_t size() const { return static_cast<int64_t>(bytes_); }

 private:
  uint8_t* data_;
  size_t bytes_;
};

#if defined(__x86_64__)
// Reads kStreams places at once: several rows of a matrix are that many streams for the prefetcher.
template <int kStreams>
__attribute__((target("avx2"))) uint64_t ReadAll(const uint8_t* p, int64_t bytes) {
  const int64_t part = bytes / kStreams / 256 * 256;
  __m256i sum[4] = {};
  for (int64_t i = 0; i < part; i += 128) {
#pragma GCC unroll 4
    for (int stream = 0; stream < kStreams; ++stream) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const auto* v = reinterpret_cast<const __m256i*>(p + stream * part + i + 32 * j);
        sum[j] = _mm256_xor_si256(sum[j], _mm256_loadu_si256(v));
      }
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0));
}

// Multiply-adds of 8-bit numbers by vpmaddubsw, vpmaddwd and vpaddd on registers alone.
__attribute__((target("avx2"))) double Avx2Ops(int64_t steps, int32_t* sink) {
  const __m256i x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  __m256i sum[8] = {};
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      __m256i t;
      asm volatile(
          "vpmaddubsw %2, %3, %1\n\t"
          "vpmaddwd %4, %1, %1\n\t"
          "vpaddd %1, %0, %0"
          : "+x"(sum[j]), "=&x"(t)
          : "x"(y), "x"(x), "x"(ones));
    }
  }
  for (int j = 1; j < 8; ++j) sum[0] = _mm256_add_epi32(sum[0], sum[j]);
  *sink = _mm256_extract_epi32(sum[0], 0);
  return 8 * 64.0 * static_cast<double>(steps);
}

__attribute__((target("avx512f,avx512vnni"))) double Avx512Ops(int64_t steps, int32_t* sink) {
  __m512i x = _mm512_set1_epi32(0x03030303), y = _mm512_set1_epi32(0x05050505);
  __m512i sum[12] = {};
  for (int64_t i = 0; i < steps; ++i) {
    for (int j = 0; j < 12; ++j) sum[j] = _mm512_dpbusd_epi32(sum[j], x, y);
    asm volatile("" : "+v"(x));
  }
  for (int j = 1; j < 12; ++j) sum[0] = _mm512_add_epi32(sum[0], sum[j]);
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, sum[0]);
  *sink = lanes[0];
  return 12 * 128.0 * static_cast<double>(steps);
}

double PeakOps(std::string_view isa) {
  int32_t sink = 0;
  double ops = 0;
  const int64_t steps = 2000000;
  if (isa == "avx512") {
    const double seconds = BestSeconds(20, [&] { ops = Avx512Ops(steps, &sink); });
    return ops / seconds;
  }
  if (isa != "avx2") return 0;
  const double seconds = BestSeconds(20, [&] { ops = Avx2Ops(steps, &sink); });
  return ops / seconds;
}
#else
template <int kStreams>
uint64_t ReadAll(const uint8_t* p, int64_t bytes) {
  uint64_t sum[4] = {};
  for (int64_t i = 0; i + 32 <= bytes; i += 32) {
    for (int j = 0; j < 4; ++j) {
      uint64_t word;
      std::memcpy(&word, p + i + 8 * j, 8);
      sum[j] ^= word;
    }
  }
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}
double PeakOps(std::string_view) { return 0; }
#endif

const KernelTable* TableFor(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kScalar:
      return ScalarKernels();
    case InstructionSet::kAvx2:
      return Avx2Kernels();
    case InstructionSet::kAvx512:
      return Avx512Kernels();
    case InstructionSet::kNeon:
      return NeonKernels();
  }
  return nullptr;
}

// Columns of kernel's own layout from small numbers.
std::vector<uint8_t> Columns(const MatmulKernel& kernel, int64_t k, int64_t count) {
  const int64_t stride = kernel.column_bytes(k);
  std::vector<uint8_t> columns(static_cast<size_t>(stride * count + 64));
  uint8_t* first = columns.data() + (64 - reinterpret_cast<uintptr_t>(columns.data()) % 64) % 64;
  std::vector<float> x(static_cast<size_t>(k));
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t e = 0; e < k; ++e) x[e] = static_cast<float>((e * 7 + j * 13) % 101 - 50) * 0.02f;
    kernel.prepare_column(k, x.data(), first + j * stride);
  }
  std::rotate(columns.begin(), columns.begin() + (first - columns.data()), columns.end());
  return columns;
}

struct Limits {
  double bytes_per_s;
  double ops_per_s;
};

void Measure(const KernelTable& table, int format, const Options& options, const Memory& memory,
             const Limits& limits) {
  const MatmulKernel& kernel = table.matmul[format];
  const int64_t k = options.k;
  const int64_t row_bytes = k / kElements[format] * kBytes[format];
  const int64_t stride = kernel.column_bytes(k);
  const std::vector<uint8_t> storage = Columns(kernel, k, options.columns);
  const uint8_t* columns = storage.data();
  // A share of rows as one thread of the device takes it.
  const int64_t rows = 256;
  std::vector<float> out(
      static_cast<size_t>(std::max(rows * options.columns, memory.size() / row_bytes)));
  const double gemm = BestSeconds(7, [&] {
    kernel.multiply(k, memory.data(), row_bytes, rows, columns, stride, options.columns, out.data(),
                    rows);
  });
  const double ops = 2.0 * static_cast<double>(rows * options.columns * k) / gemm;
  const int64_t all_rows = memory.size() / row_bytes;
  const double gemv = BestSeconds(7, [&] {
    kernel.multiply(k, memory.data(), row_bytes, all_rows, columns, stride, 1, out.data(),
                    all_rows);
  });
  const double bytes = static_cast<double>(all_rows * row_bytes) / gemv;
  std::vector<float> x(static_cast<size_t>(k), 0.5f);
  std::vector<uint8_t> column(storage);
  const double prepare = BestSeconds(7, [&] {
    for (int i = 0; i < 100; ++i) kernel.prepare_column(k, x.data(), column.data());
  });
  std::printf("%-7s %9.1f %9.1f%% %9.2f %9.1f%% %9.2f\n", kNames[format], ops * 1e-9,
              limits.ops_per_s > 0 ? 100 * ops / limits.ops_per_s : 0.0, bytes * 1e-9,
              100 * bytes / limits.bytes_per_s, 1e7 * prepare / static_cast<double>(k));
}

int Main(const Options& options) {
  InstructionSet isa = BestInstructionSet();
  for (const InstructionSet other : {InstructionSet::kScalar, InstructionSet::kAvx2,
                                     InstructionSet::kAvx512, InstructionSet::kNeon}) {
    if (InstructionSetName(other) == options.isa) isa = other;
  }
  const KernelTable* table = IsSupported(isa) ? TableFor(isa) : nullptr;
  if (table == nullptr) {
    std::fprintf(stderr,
                 "kernels_bench: this build or processor does not have that instruction set\n");
    return 2;
  }
  const Memory memory(options.mib << 20);
  uint64_t sink = 0;
  const int64_t bytes = memory.size() - 8192;
  const double read = std::min(BestSeconds(8, [&] { sink += ReadAll<1>(memory.data(), bytes); }),
                               BestSeconds(8, [&] { sink += ReadAll<4>(memory.data(), bytes); }));
  const Limits limits = {static_cast<double>(bytes) / read, PeakOps(table->name)};
  std::printf("%s, k %lld, %lld columns; one core reads %.2f GB/s, int8 peak %.1f GOP/s (%d)\n",
              table->name, static_cast<long long>(options.k),
              static_cast<long long>(options.columns), limits.bytes_per_s * 1e-9,
              limits.ops_per_s * 1e-9, static_cast<int>(sink & 1));
  std::printf("%-7s %9s %10s %9s %10s %9s\n", "format", "GOP/s", "of peak", "GB/s", "of read",
              "prep ns/el");
  for (int f = 0; f < kFormatCount; ++f) {
    if (options.format.empty() || options.format == kNames[f]) {
      Measure(*table, f, options, memory, limits);
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft::cpu

int main(int argc, char** argv) {
  weft::cpu::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--isa") options.isa = argv[i + 1];
    if (name == "--format") options.format = argv[i + 1];
    if (name == "--columns") options.columns = weft::NumberArgument<int64_t>(argv[i + 1]);
    if (name == "--k") options.k = weft::NumberArgument<int64_t>(argv[i + 1]);
    if (name == "--mib") options.mib = weft::NumberArgument<int64_t>(argv[i + 1]);
  }
  return weft::cpu::Main(options);
}
