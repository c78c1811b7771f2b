// POST /v1/completions
#pragma once

#include "common/http/http_message.h"
#include "coordinator/http/served_model.h"

namespace weft {

// `client`: whose turn it is where requests wait. What `model` points to outlives the reply.
HttpReply HandleCompletion(const ServedModel& model, const HttpRequest& request,
                           const std::string& client, ClientWatch& watch);

}  // namespace weft
