// What a model says, taken apart.
#pragma once

#include <string>

namespace weft {

struct ReplyEvent {
  enum class Kind {
    kContent,        // more text of the answer
    kReasoning,      // more text of the thoughts before it
    kCallBegin,      // a call of function `text`; `index` counts calls from 0
    kCallArguments,  // more of the arguments of call `index`, JSON as text
    kEnd,            // nothing follows
  };
  Kind kind = Kind::kEnd;
  std::string text;
  int index = 0;

  bool operator==(const ReplyEvent&) const = default;
};

}  // namespace weft
