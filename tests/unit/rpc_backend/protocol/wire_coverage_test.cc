// No message without a fuzz target: the list of messages comes from protobuf's descriptors.
#include <filesystem>
#include <set>

#include "google/protobuf/descriptor.h"
#include "proto/membership.pb.h"
#include "proto/program.pb.h"
#include "proto/step.pb.h"
#include "proto/weights.pb.h"
#include "proto/worker.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wire_targets.h"

namespace weft {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;

// `type` and the messages in it.
void Collect(const Descriptor& type, std::set<std::string>& names) {
  if (!names.insert(type.name()).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->message_type() != nullptr) Collect(*type.field(i)->message_type(), names);
  }
}

TEST(WireCoverage, EveryMessage_HasAFuzzTarget) {
  std::set<std::string> covered;
  for (const Descriptor* type : ControlMessages()) Collect(*type, covered);
  // Those that travel as bytes in others, and on the data plane, have targets of their own.
  Collect(*proto::Graph::descriptor(), covered);
  Collect(*proto::Program::descriptor(), covered);
  Collect(*proto::LoadManifest::descriptor(), covered);
  Collect(*proto::StepRequest::descriptor(), covered);
  Collect(*proto::StepReply::descriptor(), covered);
  for (const char* name :
       {"wire_graph", "wire_program", "wire_load_manifest", "wire_step_request", "wire_step_reply",
        "wire_control_message", "wire_hello_request", "wire_hello_reply", "weight_digests"}) {
    EXPECT_EQ(FindWireTarget(name).name, name);
  }

  const FileDescriptor* const files[] = {
      proto::Graph::descriptor()->file(),        proto::Program::descriptor()->file(),
      proto::StepRequest::descriptor()->file(),  proto::LoadManifest::descriptor()->file(),
      proto::HelloRequest::descriptor()->file(), proto::JoinRequest::descriptor()->file()};
  for (const FileDescriptor* file : files) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      EXPECT_TRUE(covered.contains(file->message_type(i)->name()))
          << file->message_type(i)->full_name() << " has no fuzz target";
    }
  }
  // All files of the folder are in that list.
  std::set<std::string> known;
  for (const FileDescriptor* file : files) known.insert(file->name());
  const std::filesystem::path source = std::getenv("WEFT_SOURCE_DIR");
  for (const auto& file : std::filesystem::directory_iterator(source / "proto")) {
    if (file.path().extension() != ".proto") continue;
    EXPECT_TRUE(known.contains("proto/" + file.path().filename().string())) << file.path();
  }
}

TEST(WireCoverage, EveryTarget_IsBuiltAsAFuzzer) {
  const std::string lists =
      FileText(std::string(std::getenv("WEFT_SOURCE_DIR")) + "/tests/fuzz/CMakeLists.txt");
  for (const WireTarget& target : WireTargets()) {
    EXPECT_NE(lists.find("\n  " + std::string(target.name) + "\n"), std::string::npos)
        << target.name;
  }
}

}  // namespace
}  // namespace weft
