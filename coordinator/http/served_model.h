// What one server serves, as its handlers see it.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/http/fleet_view.h"
#include "coordinator/http/id_source.h"
#include "coordinator/http/text_engine.h"
#include "coordinator/sampling/sampler_options.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

// Everything that it points to outlives the server.
struct ServedModel {
  std::string name;     // as /v1/models lists it
  int64_t created = 0;  // Unix time
  TextEngine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatFormat* chat = nullptr;                // null: no chat
  const OutputConstraints* constraints = nullptr;  // null: none
  const FleetView* fleet = nullptr;                // null: nothing is known of machines
  SamplerOptions sampler;                          // of requests that say nothing else
  const Clock* clock = nullptr;
  IdSource* ids = nullptr;
};

}  // namespace weft
