// The endpoints that need no engine: models, tokens.
#pragma once

#include "common/http/http_message.h"
#include "coordinator/http/served_model.h"

namespace weft {

// GET /v1/models
HttpReply HandleModels(const ServedModel& model);
// GET /v1/models/NAME
HttpReply HandleModel(const ServedModel& model, const std::string& name);
// POST /tokenize: {"content", "add_special", "parse_special", "with_pieces"} -> {"tokens"}
HttpReply HandleTokenize(const ServedModel& model, const HttpRequest& request);
// POST /detokenize: {"tokens"} -> {"content"}
HttpReply HandleDetokenize(const ServedModel& model, const HttpRequest& request);

}  // namespace weft
