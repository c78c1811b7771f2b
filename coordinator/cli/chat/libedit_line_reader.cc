// Lines edited with libedit.
#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cli/chat/line_reader.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

constexpr int kMostHistory = 1000;
constexpr wchar_t kCtrlC = 3;

class EditLineReader final : public LineReader {
 public:
  EditLineReader(std::string history_file, Interrupt& interrupt)
      : history_file_(std::move(history_file)), interrupt_(interrupt) {}
  ~EditLineReader() override {
    if (history_ != nullptr) history_end(history_);
    if (edit_ != nullptr) el_end(edit_);
  }
  EditLineReader(const EditLineReader&) = delete;
  EditLineReader& operator=(const EditLineReader&) = delete;

  absl::Status Open() {
    // Without a locale of UTF-8 the library takes each byte for a character.
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX < 2) std::setlocale(LC_CTYPE, "C.UTF-8");
    edit_ = el_init("weft", stdin, stdout, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr) {
      return absl::UnavailableError("the terminal cannot edit lines");
    }
    HistEvent event = {};
    history(history_, &event, H_SETSIZE, kMostHistory);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &PromptOf);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_SIGNAL, 1);  // the size of the window changes, the program is put to sleep
    el_set(edit_, EL_ADDFN, "weft-interrupt", "gives the line up", &OnInterrupt);
    // While a line is edited Ctrl-C is a key like others: the signal is read as one.
    el_set(edit_, EL_GETCFN, &ReadCharacter);
    el_set(edit_, EL_BIND, "^C", "weft-interrupt", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(edit_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    return absl::OkStatus();
  }

  absl::StatusOr<InputLine> Read(const std::string& prompt) override {
    prompt_ = prompt;
    interrupted_ = false;
    interrupt_.Take();  // one that came as the answer ended
    // The library writes the prompt first and stops the terminal's echo afterwards: who types as
    // soon as the prompt is there would see it twice.
    el_set(edit_, EL_PREP_TERM, 1);
    int count = 0;
    const char* text = el_gets(edit_, &count);
    if (interrupted_) {
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      const bool empty = text == nullptr || count <= 0;
      return InputLine{InputLine::Kind::kInterrupt, empty ? "" : std::string(text)};
    }
    if (text == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      return InputLine{};
    }
    std::string line(text);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    if (line.size() > kMostLineBytes) {
      return absl::OutOfRangeError(
          absl::StrCat("a line of the input has more than ", kMostLineBytes, " bytes"));
    }
    Remember(line);
    return InputLine{InputLine::Kind::kLine, ReplaceInvalidUtf8(line)};
  }

 private:
  static EditLineReader* Self(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<EditLineReader*>(self);
  }
  static char* PromptOf(EditLine* edit) { return Self(edit)->prompt_.data(); }
  static unsigned char OnInterrupt(EditLine* edit, int) {
    Self(edit)->interrupted_ = true;
    return CC_NEWLINE;
  }

  // Whether a byte can be read from the terminal; false: Ctrl-C came before it.
  bool AwaitByte() {
    std::array<pollfd, 2> wait = {
        {{STDIN_FILENO, POLLIN, 0}, {interrupt_.descriptor(), POLLIN, 0}}};
    while (poll(wait.data(), wait.size(), -1) < 0) {
      if (errno != EINTR) return true;  // reading will say what is wrong
    }
    return wait[1].revents == 0 || !interrupt_.Take();
  }

  static int ReadCharacter(EditLine* edit, wchar_t* character) {
    std::mbstate_t state = {};
    while (true) {
      if (!Self(edit)->AwaitByte()) {
        *character = kCtrlC;
        return 1;
      }
      char byte = 0;
      const ssize_t got = read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return static_cast<int>(got);
      const size_t taken = std::mbrtowc(character, &byte, 1, &state);
      if (taken == static_cast<size_t>(-2)) continue;  // the rest of it follows
      if (taken != static_cast<size_t>(-1)) return 1;
      state = {};  // no character of this locale
    }
  }

  void Remember(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    HistEvent event = {};
    history(history_, &event, H_ENTER, line.c_str());
    if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
  }

  const std::string history_file_;
  Interrupt& interrupt_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace

bool HasLineEditing() { return true; }

absl::StatusOr<std::unique_ptr<LineReader>> MakeEditLineReader(const std::string& history_file,
                                                               Interrupt& interrupt) {
  auto reader = std::make_unique<EditLineReader>(history_file, interrupt);
  const absl::Status opened = reader->Open();
  if (!opened.ok()) return opened;
  return reader;
}

}  // namespace weft
