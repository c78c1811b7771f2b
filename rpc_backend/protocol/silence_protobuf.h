// Protobuf writes to stderr what it finds wrong in messages, bytes of strangers included.
#pragma once

namespace weft {

// Ends that for this process, from its main(): whoever reads a message checks it, and says in an
// error what is wrong.
void SilenceProtobuf();

}  // namespace weft
