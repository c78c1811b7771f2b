// Collects the events of a reply. White space (blanks, tabs, line ends) around thoughts and calls
// belongs to the format, not to the text, and is left out; everywhere else the text stays as it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/chat/reply_event.h"

namespace weft {

class ReplySink {
 public:
  void Content(std::string_view text);
  void Reasoning(std::string_view text);
  // White space that follows is not part of the answer.
  void EndThoughts();
  void Call(std::string_view name, std::string_view arguments);
  // After the last of them.
  void End();

  // What came since the last Take().
  std::vector<ReplyEvent> Take() { return std::exchange(events_, {}); }

 private:
  // A stretch of text of one kind. White space at its end waits for what follows; a run of more
  // than kMaxHeldSpace passes through, so that nothing waits without bound.
  struct Stretch {
    std::string held;
    bool at_start = true;   // leaves out white space
    bool long_run = false;  // the run of white space under way was too long to be held
  };

  void Add(Stretch* stretch, ReplyEvent::Kind kind, std::string_view text);
  void Emit(ReplyEvent::Kind kind, std::string_view text, int index = 0);

  std::vector<ReplyEvent> events_;
  Stretch content_{"", false, false};
  Stretch reasoning_;
  int calls_ = 0;
};

}  // namespace weft
