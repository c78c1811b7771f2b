// Everything that takes bytes from another process or from a digest file: one function for each, as
// the fuzz targets and the tests with damaged messages run it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace google::protobuf {
class Descriptor;
}

namespace weft {

struct WireTarget {
  // Its fuzz target is NAME_fuzz, its corpus tests/fuzz/corpus/NAME.
  std::string_view name;
  // Decodes the bytes and, where that works, verifies and encodes again; aborts the program where
  // something does not fit. Returns what the decoder or verifier said.
  absl::Status (*run)(std::string_view bytes);
  // Inputs that decode, by name.
  std::vector<std::pair<std::string, std::string>> (*seeds)();
};

absl::Span<const WireTarget> WireTargets();
// Aborts the program if there is none of that name.
const WireTarget& FindWireTarget(std::string_view name);

// The messages that the target `control_message` runs, chosen by the first byte: those that the
// services of proto/worker.proto take or return, without repetitions, in the order of the
// descriptors.
std::vector<const google::protobuf::Descriptor*> ControlMessages();

// Changes bytes as an enemy would: bits, edge numbers, pieces cut, doubled or taken from `other`.
class Random;
void Damage(Random& random, std::string_view other, std::string& bytes);

}  // namespace weft
