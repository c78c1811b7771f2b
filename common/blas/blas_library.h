// The matrix product of OpenBLAS, found at run time: nothing of weft needs it to build or to start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace weft {

// C = A^T B in F32, column by column: c[j * c_stride + i] = sum over e < k of a[i * a_stride + e] *
// b[j * b_stride + e], for i < rows and j < columns.
struct SgemmOperands {
  int32_t k = 0, rows = 0, columns = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  int32_t a_stride = 0, b_stride = 0, c_stride = 0;  // in floats
};

// Its threads belong to the process and not to this object, so a process loads it once and shares
// it. Thread-safe; products take turns.
class BlasLibrary {
 public:
  static constexpr const char* kOpenBlas = "libopenblas.so.0";

  // Looks for the file where the dynamic linker does. It stays loaded until the process ends: its
  // threads do not survive unloading. Errors: NOT_FOUND with the linker's reason and the package to
  // install; FAILED_PRECONDITION where it is another library.
  static absl::StatusOr<std::shared_ptr<BlasLibrary>> Load(const std::string& file = kOpenBlas);

  // On that many threads of the library's.
  void Multiply(const SgemmOperands& operands, int threads) ABSL_LOCKS_EXCLUDED(mutex_);

  // "OpenBLAS 0.3.21".
  const std::string& description() const { return description_; }

 private:
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float* a, int lda, const float* b, int ldb, float beta, float* c,
                         int ldc);
  using SetThreads = void (*)(int threads);

  BlasLibrary(Sgemm sgemm, SetThreads set_threads, std::string description)
      : sgemm_(sgemm), set_threads_(set_threads), description_(std::move(description)) {}

  const Sgemm sgemm_;
  const SetThreads set_threads_;
  const std::string description_;
  Mutex mutex_;  // the number of threads is the library's, for all products at once
};

}  // namespace weft
