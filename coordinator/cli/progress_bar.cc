#include "coordinator/cli/progress_bar.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kRedraw{100};

}  // namespace

std::string BytesText(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%.0f B", bytes);
  return absl::StrFormat("%.2f %s", bytes, kUnits[unit]);
}

ProgressBar::ProgressBar(const Clock& clock, std::string label, std::string unit)
    : clock_(clock),
      label_(std::move(label)),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(clock.Now()),
      last_(start_) {}

ProgressBar::~ProgressBar() { Finish(); }

std::string ProgressBar::Text(const std::string& label, const std::string& unit, int64_t done,
                              int64_t total, double seconds) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const int filled = static_cast<int>(share * kBarWidth);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string rate_text =
      unit == "B" ? absl::StrCat(BytesText(rate), "/s") : absl::StrFormat("%.1f %s/s", rate, unit);
  std::string text = absl::StrFormat("%s [%s%s] %3.0f %%  %s", label, std::string(filled, '#'),
                                     std::string(kBarWidth - filled, '.'), share * 100, rate_text);
  if (rate > 0 && done < total) {
    absl::StrAppendFormat(&text, "  %.0f s left", static_cast<double>(total - done) / rate);
  }
  return text;
}

void ProgressBar::Update(int64_t done, int64_t total) {
  if (!terminal_) return;
  const Clock::TimePoint now = clock_.Now();
  if (drawn_ && now - last_ < kRedraw && done < total) return;
  last_ = now;
  drawn_ = true;
  const std::string text = Text(label_, unit_, done, total, SecondsSince(clock_, start_));
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void ProgressBar::Finish() {
  if (!drawn_) return;
  drawn_ = false;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace weft
