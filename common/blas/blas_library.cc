#include "common/blas/blas_library.h"

#include <dlfcn.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

// Of the C interface to BLAS.
constexpr int kColumnMajor = 102;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

// Function `name` as a T; null if the library has none.
template <typename T>
T Symbol(void* library, const char* name) {
  return reinterpret_cast<T>(dlsym(library, name));
}

// "OpenBLAS 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string FirstTwoWords(std::string_view text) {
  const size_t second = text.find(' ');
  const size_t end = second == std::string_view::npos ? second : text.find(' ', second + 1);
  return std::string(text.substr(0, end));
}

}  // namespace

absl::StatusOr<std::shared_ptr<BlasLibrary>> BlasLibrary::Load(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return absl::NotFoundError(
        absl::StrCat("cannot load OpenBLAS: ", reason == nullptr ? file : reason,
                     "; on Debian install libopenblas0-pthread"));
  }
  const auto sgemm = Symbol<Sgemm>(library, "cblas_sgemm");
  const auto set_threads = Symbol<SetThreads>(library, "openblas_set_num_threads");
  const auto config = Symbol<char* (*)()>(library, "openblas_get_config");
  if (sgemm == nullptr || set_threads == nullptr || config == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " is not OpenBLAS with the C interface"));
  }
  const char* text = config();
  // Not make_shared: the constructor is private.
  return std::shared_ptr<BlasLibrary>(
      new BlasLibrary(sgemm, set_threads, FirstTwoWords(text == nullptr ? "OpenBLAS" : text)));
}

void BlasLibrary::Multiply(const SgemmOperands& o, int threads) {
  MutexLock lock(mutex_);
  set_threads_(threads);
  sgemm_(kColumnMajor, kTranspose, kNoTranspose, o.rows, o.columns, o.k, 1, o.a, o.a_stride, o.b,
         o.b_stride, 0, o.c, o.c_stride);
}

}  // namespace weft
