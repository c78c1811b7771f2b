#include "common/base/refusal_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {

void RefusalLog::Add(std::string_view who, std::string_view why) {
  ++count_;
  if (logger_ == nullptr) return;
  int64_t left_out = 0;
  if (!budget_.Take(clock_.Now(), left_out)) return;
  std::string line =
      absl::StrCat(AbslView(what_), " from ", who.empty() ? "somewhere" : AbslView(who),
                   " was refused: ", AbslView(why));
  if (left_out > 0) absl::StrAppend(&line, " (and ", left_out, " others before it)");
  logger_->Warning(line);
}

void RefusalLog::SayRest() {
  const int64_t left_out = budget_.TakeLeftOut(clock_.Now());
  if (left_out == 0) return;
  logger_->Warning(absl::StrCat(AbslView(what_), " was refused ", left_out, " times more"));
}

}  // namespace weft
