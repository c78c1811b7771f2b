// POST /v1/embeddings.
#pragma once

#include <string>

#include "common/http/http_message.h"
#include "coordinator/http/served_model.h"

namespace weft {

HttpReply HandleEmbeddings(const ServedModel& model, const HttpRequest& request,
                           const std::string& client, ClientWatch& watch);

}  // namespace weft
