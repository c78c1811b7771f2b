#include "rpc_backend/protocol/silence_protobuf.h"

#include <google/protobuf/stubs/logging.h>

namespace weft {

void SilenceProtobuf() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace weft
