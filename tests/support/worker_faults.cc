#include "tests/support/worker_faults.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "tests/support/planted_fault.h"

namespace weft {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

constexpr std::pair<std::string_view, FaultAction> kActions[] = {
    {"kill", FaultAction::kKill},       {"stop", FaultAction::kStop},
    {"error", FaultAction::kError},     {"garbage", FaultAction::kGarbage},
    {"corrupt", FaultAction::kCorrupt}, {"count", FaultAction::kCount}};
constexpr std::pair<std::string_view, MessageKind> kKinds[] = {
    {"kExecute", MessageKind::kExecute},       {"kReply", MessageKind::kReply},
    {"kCancel", MessageKind::kCancel},         {"kEdge", MessageKind::kEdge},
    {"kCollective", MessageKind::kCollective}, {"kProbe", MessageKind::kProbe},
    {"kWeights", MessageKind::kWeights}};

// A message that carries one of the planted kind, not the greeting of a stream.
bool IsOfKind(const proto::DataMessage& message) {
  const bool begins = message.action() == proto::DATA_MESSAGE && !message.payload().empty();
  const bool announced = message.action() == proto::DATA_ANNOUNCE;
  const bool cancel = planted_fault()->kind == static_cast<uint32_t>(MessageKind::kCancel);
  return message.nonce().empty() && message.proof().empty() &&
         message.kind() == planted_fault()->kind && (begins || announced || cancel);
}

std::optional<proto::DataMessage> Parse(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return std::nullopt;
  std::string flat;
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  proto::DataMessage message;
  if (!message.ParseFromString(flat)) return std::nullopt;
  return message;
}

// One call in progress.
class FaultInterceptor final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      OnReceived(methods->GetRecvMessage());
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      grpc::ByteBuffer* const bytes = methods->GetSerializedSendMessage();
      if (bytes != nullptr) OnSend(*bytes);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) && fail_) {
      methods->ModifySendStatus(
          grpc::Status(grpc::StatusCode::INTERNAL, "a fault that a test planted"));
    }
    methods->Proceed();
  }

 private:
  void OnReceived(const void* message) {
    if (message == nullptr) return;
    if (planted_fault()->of_data && !IsOfKind(*static_cast<const proto::DataMessage*>(message)))
      return;
    Strike();
  }

  void OnSend(grpc::ByteBuffer& bytes) {
    if (planted_fault()->of_data) {
      const std::optional<proto::DataMessage> message = Parse(bytes);
      if (message && IsOfKind(*message)) {
        Strike();
        if (corrupt_) ticket_ = message->ticket();
      }
      // The payload of a large message follows its announcement, when it is asked for.
      const bool carries = message && message->ticket() == ticket_ && !message->payload().empty();
      if (corrupt_ && carries) Corrupt(*message, bytes);
    }
    if (!garble_) return;
    garble_ = false;
    const grpc::Slice garbage(std::string(64, '\xff'));
    bytes = grpc::ByteBuffer(&garbage, 1);
  }

  void Corrupt(proto::DataMessage message, grpc::ByteBuffer& bytes) {
    corrupt_ = false;
    char& first = (*message.mutable_payload())[0];
    first = static_cast<char>(first ^ 1);
    const grpc::Slice slice(message.SerializeAsString());
    bytes = grpc::ByteBuffer(&slice, 1);
  }

  void Strike() {
    if (!planted_fault()->Strike()) return;
    fail_ = planted_fault()->action == FaultAction::kError;
    garble_ = planted_fault()->action == FaultAction::kGarbage;
    corrupt_ = planted_fault()->action == FaultAction::kCorrupt;
  }

  bool fail_ = false;
  bool garble_ = false;
  bool corrupt_ = false;
  int64_t ticket_ = 0;  // of the message to corrupt
};

class PassingInterceptor final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override { methods->Proceed(); }
};

class FaultFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    const std::string verb =
        planted_fault()->of_data ? "WorkerData/Messages" : planted_fault()->verb;
    const std::vector<std::string> path = absl::StrSplit(info->method(), '/');
    const bool meant = path.back() == verb || absl::StrCat("WorkerData/", path.back()) == verb;
    // gRPC owns it.
    if (meant) return std::make_unique<FaultInterceptor>().release();
    return std::make_unique<PassingInterceptor>().release();
  }
};

class FaultPlugin final : public grpc::ServerBuilderPlugin {
 public:
  std::string name() override { return "weft_worker_faults"; }
  void UpdateServerBuilder(grpc::ServerBuilder* builder) override {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
    factories.push_back(std::make_unique<FaultFactory>());
    builder->experimental().SetInterceptorCreators(std::move(factories));
  }
  void InitServer(grpc::ServerInitializer*) override {}
  void Finish(grpc::ServerInitializer*) override {}
  void ChangeArguments(const std::string&, void*) override {}
};

bool IsRpc(const std::string& verb) {
  for (const auto* service : {"weft.proto.Worker", "weft.proto.WorkerData"}) {
    const auto* found =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    if (found != nullptr && found->FindMethodByName(verb) != nullptr) return true;
  }
  return false;
}

}  // namespace

absl::Status PlantFault(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(AbslView(text), ':');
  auto fault = std::make_unique<PlantedFault>();
  fault->verb = parts[0];
  for (const auto& [name, kind] : kKinds) {
    if (parts[0] != name) continue;
    fault->of_data = true;
    fault->kind = static_cast<uint32_t>(kind);
  }
  bool known = false;
  for (const auto& [name, action] : kActions) {
    if (parts.size() < 2 || parts[1] != name) continue;
    fault->action_name = parts[1];
    fault->action = action;
    known = true;
  }
  const bool counted =
      parts.size() < 3 || (absl::SimpleAtoi(parts[2], &fault->count) && fault->count > 0);
  if (!known || !counted || parts.size() > 3 || (!fault->of_data && !IsRpc(fault->verb))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--fault ", AbslView(text), ": want VERB:kill|stop|error|garbage|corrupt|count[:N]"));
  }
  planted_fault() = fault.release();
  grpc::ServerBuilder::InternalAddPluginFactory([]() -> std::unique_ptr<grpc::ServerBuilderPlugin> {
    return std::make_unique<FaultPlugin>();
  });
  return absl::OkStatus();
}

}  // namespace weft
