// Values for tests of what travels between processes: well-formed, every field set, and none of
// them at its default.
#pragma once

#include <string>
#include <vector>

#include "common/digest/weight_digests.h"
#include "common/graph/graph.h"
#include "common/program/program.h"
#include "google/protobuf/message.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "rpc_backend/protocol/step_codec.h"

namespace weft {

// At least one for each struct of OpAttributes; each function of unary and glu.
std::vector<OpAttributes> SampleAttributes();
// At least one for each struct of Command.
std::vector<Command> SampleCommands();

// A node for each op and each of its sample attributes. Decodes, but is no legal graph.
Graph SampleGraph();
// With all sample commands. Decodes, but is no legal program.
Program SampleProgram();

// `inputs` must outlive the result.
StepRequest SampleStepRequest(const std::vector<std::vector<uint8_t>>& inputs);
StepReply SampleStepReply();
StepReply SampleFailedStepReply();
LoadManifest SampleManifest();
WeightDigests SampleDigests();
CoordinatorHello SampleCoordinatorHello();
WorkerHello SampleWorkerHello();

// Sets every field to a value that CheckMessage accepts: numbers that count up, short texts, two
// elements in each list (where its rule allows them), the first alternative of each oneof.
void FillMessage(google::protobuf::Message& message);

}  // namespace weft
