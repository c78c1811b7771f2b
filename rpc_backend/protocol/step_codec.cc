#include "rpc_backend/protocol/step_codec.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/status_codec.h"
#include "rpc_backend/protocol/wire_reader.h"
#include "rpc_backend/protocol/wire_writer.h"

namespace weft {
namespace {

// Field numbers of proto/step.proto; a test compares them with the generated code.
namespace request_field {
constexpr int kInstance = 1, kEdgeStep = 2, kInputs = 3, kTableUpdates = 4, kPageCopies = 5,
              kDeadlineMs = 6;
}
namespace reply_field {
constexpr int kCode = 1, kMessage = 2, kOutputs = 3, kComputeSeconds = 4, kWaitSeconds = 5,
              kWireSeconds = 6, kHandOffSeconds = 7;
}

// Inputs and outputs up to this size are copied between the message's own bytes; a part of its own
// costs more.
constexpr size_t kCopiedBytes = 512;

std::string_view TextOf(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Numbers of sub-messages of up to four integers, which are written without their zeros.
struct Ints {
  int64_t values[4];

  size_t Bytes() const {
    size_t bytes = 0;
    for (int i = 0; i < 4; ++i) {
      if (values[i] != 0) bytes += WireWriter::IntBytes(i + 1, values[i]);
    }
    return bytes;
  }
  void Write(int field, WireWriter& writer) const {
    writer.BytesHeader(field, Bytes());
    for (int i = 0; i < 4; ++i) {
      if (values[i] != 0) writer.Int(i + 1, values[i]);
    }
  }
};

absl::Status WrongType(absl::string_view field) {
  return absl::InvalidArgumentError(absl::StrCat("field '", field, "' has another type"));
}

// An integer of least to most.
absl::Status TakeInt(absl::string_view name, const WireField& field, int64_t least, int64_t most,
                     int64_t& value) {
  if (field.type != WireType::kVarint) return WrongType(name);
  const auto number = static_cast<int64_t>(field.value);
  RETURN_IF_ERROR(CheckField(name, number, least, most));
  value = number;
  return absl::OkStatus();
}

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// The integers of a sub-message: not negative, the first three within 32 bits.
absl::Status TakeInts(absl::string_view name, const WireField& field, Ints& ints) {
  if (field.type != WireType::kBytes) return WrongType(name);
  ints = {};
  WireReader reader(field.bytes);
  while (const std::optional<WireField> inner = reader.Next()) {
    if (inner->number > 4) continue;
    const int64_t most = inner->number == 4 ? kMaxInt64 : kMaxInt32;
    RETURN_IF_ERROR(TakeInt(name, *inner, 0, most, ints.values[inner->number - 1]));
  }
  return reader.ok() ? absl::OkStatus()
                     : absl::InvalidArgumentError(absl::StrCat("field '", name, "' is cut off"));
}

// One more of a list of at most `most`.
template <typename List>
absl::Status CheckRoom(absl::string_view name, const List& list, int64_t most) {
  if (static_cast<int64_t>(list.size()) < most) return absl::OkStatus();
  return BadField(name, "(list)", absl::StrCat("more than ", most, " entries"));
}

absl::Status TakeSize(absl::string_view name, const WireField& field, int64_t most,
                      int64_t& total) {
  if (field.type != WireType::kBytes) return WrongType(name);
  total = SaturatingAdd(total, static_cast<int64_t>(field.bytes.size()));
  if (total <= most) return absl::OkStatus();
  return BadField(name, absl::StrCat("(", total, " bytes)"),
                  absl::StrCat("at most ", most, " are allowed"));
}

absl::Status TakeSeconds(absl::string_view name, const WireField& field, double& value) {
  if (field.type != WireType::kFixed64) return WrongType(name);
  const auto seconds = std::bit_cast<double>(field.value);
  if (!std::isfinite(seconds) || seconds < 0) return BadField(name, seconds, "is no duration");
  value = seconds;
  return absl::OkStatus();
}

class RequestDecoder {
 public:
  RequestDecoder(const WireLimits& limits, StepRequest& request)
      : limits_(limits), request_(request) {
    request.instance = InstanceId{0};
    request.deadline_ms = 0;
    request.input.edge_step = 0;
    request.input.inputs.clear();
    request.input.table_updates.clear();
    request.input.page_copies.clear();
  }

  absl::Status Take(const WireField& field) {
    StepInput& input = request_.input;
    switch (field.number) {
      case request_field::kInstance: {
        int64_t instance = 0;
        RETURN_IF_ERROR(TakeInt("instance", field, 0, kMaxInt64, instance));
        request_.instance = InstanceId{instance};
        return absl::OkStatus();
      }
      case request_field::kEdgeStep:
        return TakeInt("edge_step", field, 0, kMaxInt64, request_.input.edge_step);
      case request_field::kDeadlineMs:
        return TakeInt("deadline_ms", field, 0, limits_.timeout_ms, request_.deadline_ms);
      case request_field::kInputs:
        RETURN_IF_ERROR(CheckRoom("inputs", input.inputs, limits_.program.slots));
        RETURN_IF_ERROR(TakeSize("inputs", field, limits_.program.step_input_bytes, input_bytes_));
        input.inputs.push_back(BytesOf(field.bytes));
        return absl::OkStatus();
      case request_field::kTableUpdates: {
        RETURN_IF_ERROR(
            CheckRoom("table_updates", input.table_updates, limits_.program.table_updates));
        Ints ints;
        RETURN_IF_ERROR(TakeInts("table_updates", field, ints));
        input.table_updates.push_back({static_cast<int32_t>(ints.values[0]),
                                       static_cast<int32_t>(ints.values[1]),
                                       static_cast<int32_t>(ints.values[2])});
        return absl::OkStatus();
      }
      case request_field::kPageCopies: {
        RETURN_IF_ERROR(CheckRoom("page_copies", input.page_copies, limits_.program.page_copies));
        Ints ints;
        RETURN_IF_ERROR(TakeInts("page_copies", field, ints));
        input.page_copies.push_back({static_cast<int32_t>(ints.values[0]),
                                     static_cast<int32_t>(ints.values[1]),
                                     static_cast<int32_t>(ints.values[2]), ints.values[3]});
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();  // of a newer version
    }
  }

 private:
  const WireLimits& limits_;
  StepRequest& request_;
  int64_t input_bytes_ = 0;
};

class ReplyDecoder {
 public:
  ReplyDecoder(const WireLimits& limits, StepReply& reply) : limits_(limits), reply_(reply) {
    reply.status = absl::OkStatus();
    reply.output.compute_seconds = 0;
    reply.output.wait_seconds = 0;
    reply.output.wire_seconds = 0;
    reply.output.hand_off_seconds = 0;
  }

  absl::Status Take(const WireField& field) {
    StepOutput& output = reply_.output;
    switch (field.number) {
      case reply_field::kCode:
        return TakeInt("code", field, 0, kMaxInt32, code_);
      case reply_field::kMessage:
        if (field.type != WireType::kBytes) return WrongType("message");
        message_ = field.bytes;
        return absl::OkStatus();
      case reply_field::kOutputs: {
        if (static_cast<int64_t>(count_) == limits_.program.outputs) {
          return BadField("outputs", "(list)",
                          absl::StrCat("more than ", limits_.program.outputs, " entries"));
        }
        RETURN_IF_ERROR(
            TakeSize("outputs", field, limits_.program.step_output_bytes, output_bytes_));
        if (output.outputs.size() == count_) output.outputs.emplace_back();
        const absl::Span<const uint8_t> bytes = BytesOf(field.bytes);
        output.outputs[count_++].assign(bytes.begin(), bytes.end());
        return absl::OkStatus();
      }
      case reply_field::kComputeSeconds:
        return TakeSeconds("compute_seconds", field, output.compute_seconds);
      case reply_field::kWaitSeconds:
        return TakeSeconds("wait_seconds", field, output.wait_seconds);
      case reply_field::kWireSeconds:
        return TakeSeconds("wire_seconds", field, output.wire_seconds);
      case reply_field::kHandOffSeconds:
        return TakeSeconds("hand_off_seconds", field, output.hand_off_seconds);
      default:
        return absl::OkStatus();  // of a newer version
    }
  }

  void Finish() {
    reply_.output.outputs.resize(count_);
    reply_.status = StatusFromWire(code_, message_, limits_);
  }

 private:
  const WireLimits& limits_;
  StepReply& reply_;
  int64_t code_ = 0;
  std::string_view message_;
  size_t count_ = 0;  // of outputs
  int64_t output_bytes_ = 0;
};

void Join(const StepMessage& message, std::vector<uint8_t>& bytes) {
  bytes.clear();
  size_t size = 0;
  for (const absl::Span<const uint8_t> part : message.parts()) size += part.size();
  bytes.reserve(size);
  for (const absl::Span<const uint8_t> part : message.parts()) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
}

}  // namespace

void StepMessage::Start() {
  own_.clear();
  foreign_.clear();
  parts_.clear();
}

void StepMessage::AddBytes(int field, absl::Span<const uint8_t> bytes) {
  WireWriter writer(own_);
  if (bytes.size() <= kCopiedBytes) return writer.Bytes(field, bytes);
  writer.BytesHeader(field, bytes.size());
  foreign_.push_back({own_.size(), bytes});
}

void StepMessage::Finish() {
  const absl::Span<const uint8_t> own = own_;
  size_t done = 0;
  for (const Foreign& foreign : foreign_) {
    parts_.push_back(own.subspan(done, foreign.after - done));
    parts_.push_back(foreign.bytes);
    done = foreign.after;
  }
  if (done < own.size() || parts_.empty()) parts_.push_back(own.subspan(done));
}

void StepMessage::Encode(const StepRequest& request) {
  Start();
  const StepInput& input = request.input;
  WireWriter writer(own_);
  const auto instance = static_cast<int64_t>(request.instance);
  if (instance != 0) writer.Int(request_field::kInstance, instance);
  if (input.edge_step != 0) writer.Int(request_field::kEdgeStep, input.edge_step);
  for (const absl::Span<const uint8_t> bytes : input.inputs) {
    AddBytes(request_field::kInputs, bytes);
  }
  for (const TableUpdate& update : input.table_updates) {
    Ints{{update.table, update.entry, update.page, 0}}.Write(request_field::kTableUpdates, writer);
  }
  for (const PageCopy& copy : input.page_copies) {
    Ints{{copy.cache, copy.from, copy.to, copy.page_bytes}}.Write(request_field::kPageCopies,
                                                                  writer);
  }
  if (request.deadline_ms != 0) writer.Int(request_field::kDeadlineMs, request.deadline_ms);
  Finish();
}

void StepMessage::Encode(const StepReply& reply) {
  Start();
  WireWriter writer(own_);
  if (!reply.status.ok()) {
    writer.Int(reply_field::kCode, WireCode(reply.status));
    const std::string message = WireMessage(reply.status);
    if (!message.empty()) writer.Text(reply_field::kMessage, message);
    return Finish();
  }
  const StepOutput& output = reply.output;
  for (const std::vector<uint8_t>& bytes : output.outputs) AddBytes(reply_field::kOutputs, bytes);
  if (output.compute_seconds != 0) {
    writer.Double(reply_field::kComputeSeconds, output.compute_seconds);
  }
  if (output.wait_seconds != 0) writer.Double(reply_field::kWaitSeconds, output.wait_seconds);
  if (output.wire_seconds != 0) writer.Double(reply_field::kWireSeconds, output.wire_seconds);
  if (output.hand_off_seconds != 0) {
    writer.Double(reply_field::kHandOffSeconds, output.hand_off_seconds);
  }
  Finish();
}

void EncodeStepRequest(const StepRequest& request, std::vector<uint8_t>& bytes) {
  StepMessage message;
  message.Encode(request);
  Join(message, bytes);
}

absl::Status DecodeStepRequest(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                               StepRequest& request) {
  RequestDecoder decoder(limits, request);
  WireReader reader(TextOf(bytes));
  while (const std::optional<WireField> field = reader.Next()) {
    RETURN_IF_ERROR(InPlace("step request", decoder.Take(*field)));
  }
  return reader.ok() ? absl::OkStatus()
                     : absl::InvalidArgumentError("step request: cut off or no message");
}

void EncodeStepReply(const StepReply& reply, std::vector<uint8_t>& bytes) {
  StepMessage message;
  message.Encode(reply);
  Join(message, bytes);
}

absl::Status DecodeStepReply(absl::Span<const uint8_t> bytes, const WireLimits& limits,
                             StepReply& reply) {
  ReplyDecoder decoder(limits, reply);
  WireReader reader(TextOf(bytes));
  while (const std::optional<WireField> field = reader.Next()) {
    RETURN_IF_ERROR(InPlace("step reply", decoder.Take(*field)));
  }
  if (!reader.ok()) return absl::InvalidArgumentError("step reply: cut off or no message");
  decoder.Finish();
  return absl::OkStatus();
}

}  // namespace weft
