// The bytes of every kind of message against files. A message that changes while the version does
// not is an error: two builds would speak different languages under one name.
//
// A file is "weft wire MAJOR.MINOR\n" and the bytes. UPDATE_GOLDEN=1 writes those that are missing
// or of another version; a layout that was never released is renewed by removing its file first.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "rpc_backend/protocol/graph_codec.h"
#include "rpc_backend/protocol/program_codec.h"
#include "rpc_backend/protocol/version.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wire_samples.h"
#include "tests/support/wire_targets.h"

namespace weft {
namespace {

std::string VersionLine() {
  return absl::StrCat("weft wire ", kProtocolMajor, ".", kProtocolMinor, "\n");
}

std::string Folder() { return std::string(std::getenv("WEFT_TEST_DATA")) + "/wire"; }

// Every kind of message with every field set, by name.
std::vector<std::pair<std::string, std::string>> Messages() {
  std::vector<std::pair<std::string, std::string>> messages = {
      {"Graph", EncodeGraph(SampleGraph())},
      {"Program", EncodeProgram(SampleProgram())},
      {"LoadManifest", EncodeLoadManifest(SampleManifest())}};
  for (const char* name : {"wire_step_request", "wire_step_reply", "weight_digests"}) {
    for (const auto& [seed, bytes] : FindWireTarget(name).seeds()) {
      if (!bytes.empty()) messages.emplace_back(absl::StrCat(name, "_", seed), bytes);
    }
  }
  for (const google::protobuf::Descriptor* type : ControlMessages()) {
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    FillMessage(*message);
    messages.emplace_back(type->name(), message->SerializeAsString());
  }
  return messages;
}

TEST(GoldenMessages, EveryMessage_HasTheBytesOfItsVersion) {
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (const auto& [name, bytes] : Messages()) {
    const std::string path = absl::StrCat(Folder(), "/", name, ".bin");
    const std::string golden = FileText(path);
    const std::string expected = VersionLine() + bytes;
    const bool same_version = golden.starts_with(VersionLine());
    if (update && !same_version) {
      std::filesystem::create_directories(Folder());
      std::ofstream(path, std::ios::binary) << expected;
      continue;
    }
    ASSERT_TRUE(same_version) << path << " is missing or of another version: UPDATE_GOLDEN=1";
    EXPECT_TRUE(golden == expected)
        << name << " has other bytes than before in version " << kProtocolMajor << "."
        << kProtocolMinor << ": raise the version (rpc_backend/protocol/version.h) or undo";
  }
}

TEST(GoldenMessages, EveryFile_IsOfAMessage) {
  std::set<std::string> names;
  for (const auto& [name, bytes] : Messages()) names.insert(name + ".bin");
  for (const auto& file : std::filesystem::directory_iterator(Folder())) {
    EXPECT_TRUE(names.contains(file.path().filename())) << file.path() << " is of no message";
  }
}

}  // namespace
}  // namespace weft
