// Cuts a stream of bytes into pieces that end between characters, so that generated text can be
// shown as it comes.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Bytes go in as they arrive; what comes out is always valid UTF-8. At most 3 bytes (the start of a
// character whose rest has not come) are held back. Bytes that are not UTF-8 become U+FFFD, one for
// each maximal prefix of a possible character, as the Unicode Standard 14.0, section 3.9,
// recommends. How the input is cut into calls does not change the output as a whole. Used by one
// thread at a time.
class Utf8Stream {
 public:
  // Takes the next bytes and returns all characters that are complete.
  std::string Append(std::string_view bytes);

  // Ends the stream: what was held back comes out as one U+FFFD. The object can then take a new
  // stream.
  std::string Finish();

 private:
  std::string held_;  // the truncated character at the end, 0 to 3 bytes
};

// The whole of `bytes` as one stream: valid UTF-8, with U+FFFD for what is not.
std::string ReplaceInvalidUtf8(std::string_view bytes);

}  // namespace weft
