#include "common/base/thread.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

absl::StatusOr<std::thread> StartThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread: ", error.what()));
  }
}

}  // namespace weft
