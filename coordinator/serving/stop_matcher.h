// Finds the first of several stop texts in a text that comes in pieces: the one that ends first,
// and of those that end there the longest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

class StopMatcher {
 public:
  // Empty texts are left out.
  explicit StopMatcher(std::vector<std::string> texts);

  // Takes the next piece and returns what is certainly part of the text: all but the longest end
  // that begins a stop text. Once one has been found, what lay before it, and then nothing more.
  std::string Append(std::string_view piece);
  // What was held back, since the text is over.
  std::string Finish();

  bool found() const { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace weft
