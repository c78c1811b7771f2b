// What must hold of a ReplyParser whatever a model says; for the unit test and the fuzzer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/chat/reply_parser.h"

namespace weft {

// The events as one text, "R(thoughts)C(content)F0:name(arguments).", with their pieces joined.
// The reply comes cut at `cuts`, positions in ascending order.
std::string ReplyTranscript(const ReplyOptions& options, std::string_view text,
                            const std::vector<size_t>& cuts = {});

// Reads options and cuts from the first bytes, and checks that cuts change nothing and that plain
// text stays as it is. Ends the process where that is not so.
void CheckReply(std::string_view bytes);

}  // namespace weft
