// Lines as the terminal or a pipe gives them.
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/chat/line_reader.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

class PlainLineReader final : public LineReader {
 public:
  PlainLineReader(bool prompts, Interrupt& interrupt) : prompts_(prompts), interrupt_(interrupt) {}

  absl::StatusOr<InputLine> Read(const std::string& prompt) override {
    if (prompts_) {
      std::fputs(prompt.c_str(), stdout);
      std::fflush(stdout);
    }
    while (true) {
      const size_t end = held_.find('\n');
      if (end != std::string::npos) return Take(end, end + 1);
      if (held_.size() > kMostLineBytes) {
        return absl::OutOfRangeError(
            absl::StrCat("a line of the input has more than ", kMostLineBytes, " bytes"));
      }
      if (ended_) return held_.empty() ? InputLine{} : Take(held_.size(), held_.size());
      std::array<pollfd, 2> wait = {
          {{STDIN_FILENO, POLLIN, 0}, {interrupt_.descriptor(), POLLIN, 0}}};
      if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) {
        return absl::ErrnoToStatus(errno, "cannot wait for standard input");
      }
      if (interrupt_.Take()) {
        return InputLine{InputLine::Kind::kInterrupt, std::exchange(held_, "")};
      }
      if (wait[0].revents != 0) {
        const absl::Status status = Fill();
        if (!status.ok()) return status;
      }
    }
  }

 private:
  InputLine Take(size_t length, size_t used) {
    std::string line = held_.substr(0, length);
    held_.erase(0, used);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return {InputLine::Kind::kLine, ReplaceInvalidUtf8(line)};
  }

  absl::Status Fill() {
    std::array<char, 4096> block;
    const ssize_t count = read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return absl::ErrnoToStatus(errno, "cannot read standard input");
    }
    if (count == 0) ended_ = true;
    if (count > 0) held_.append(block.data(), static_cast<size_t>(count));
    return absl::OkStatus();
  }

  const bool prompts_;
  Interrupt& interrupt_;
  std::string held_;  // read, but not given out
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<LineReader> MakePlainLineReader(bool prompts, Interrupt& interrupt) {
  return std::make_unique<PlainLineReader>(prompts, interrupt);
}

}  // namespace weft
