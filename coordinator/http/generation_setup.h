// From the fields of a body to requests of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/http/completion_schema.h"
#include "coordinator/http/generation_fields.h"
#include "coordinator/http/served_model.h"
#include "coordinator/serving/generation_request.h"

namespace weft {

// Errors: NOT_FOUND if another model is meant.
absl::Status CheckModel(const ServedModel& model, const std::string& name);

// The tokens of a prompt, at least one. Errors: INVALID_ARGUMENT naming `field` if the model cannot
// have it.
absl::StatusOr<std::vector<int32_t>> PromptTokens(const ServedModel& model,
                                                  const PromptInput& input,
                                                  const std::string& field);

// What the choices of one body have in common.
class GenerationSetup {
 public:
  // `client`: whose turn it is where requests wait. Errors: INVALID_ARGUMENT naming the field.
  static absl::StatusOr<GenerationSetup> Create(const ServedModel& model,
                                                const GenerationFields& fields,
                                                const std::string& client);

  // The request for a choice, each with a seed of its own.
  GenerationRequest Request(std::vector<int32_t> prompt, int64_t choice) const;
  // What the fields ask of continuations of a plain prompt; empty: nothing. Errors, also of making
  // one: INVALID_ARGUMENT or UNIMPLEMENTED naming the field.
  absl::StatusOr<ConstraintMaker> Constraint() const;

 private:
  GenerationSetup(const ServedModel& model, const GenerationFields& fields)
      : model_(&model), fields_(&fields) {}

  const ServedModel* model_;
  const GenerationFields* fields_;
  SamplerOptions sampler_;
  uint64_t seed_ = 0;
  std::string client_;
  Clock::TimePoint deadline_;
};

}  // namespace weft
