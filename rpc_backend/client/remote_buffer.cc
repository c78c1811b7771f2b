#include "rpc_backend/client/remote_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/layout_codec.h"

namespace weft {
namespace {

// Bytes of one WriteBuffer or ReadBuffer: a compromise between calls and memory.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
// Bytes of one FillBuffer, which must finish within the time of a call.
constexpr int64_t kFillBytes = int64_t{1} << 30;
constexpr size_t kMaxRememberedLayouts = 65536;

std::string LayoutKey(const TensorLayout& layout) {
  return absl::StrCat(static_cast<int>(layout.dtype), " ", layout.ne[0], " ", layout.ne[1], " ",
                      layout.ne[2], " ", layout.ne[3], " ", layout.nb[0], " ", layout.nb[1], " ",
                      layout.nb[2], " ", layout.nb[3]);
}

}  // namespace

RemoteBufferType::RemoteBufferType(std::shared_ptr<WorkerConnection> connection,
                                   RemoteDevice& device)
    : connection_(std::move(connection)),
      device_(device),
      name_(absl::StrCat(device.name(), " memory")) {}

Device& RemoteBufferType::device() const { return device_; }
int64_t RemoteBufferType::alignment() const { return device_.info().alignment; }
int64_t RemoteBufferType::max_bytes() const { return device_.info().max_buffer_bytes; }
bool RemoteBufferType::is_host() const { return device_.info().buffer_is_host; }
std::string_view RemoteBufferType::layout() const { return device_.info().layout; }

int64_t RemoteBufferType::TensorBytes(const TensorLayout& layout) const {
  constexpr std::string_view kVerb = "QueryTensorBytes";
  const int64_t extent = ByteExtent(layout).value_or(0);
  if (!device_.info().pads) return extent;
  std::string key = LayoutKey(layout);
  {
    MutexLock lock(mutex_);
    if (const auto found = tensor_bytes_.find(key); found != tensor_bytes_.end()) {
      return found->second;
    }
  }
  proto::QueryTensorBytesRequest request;
  proto::QueryTensorBytesReply reply;
  request.set_device(device_.position());
  EncodeLayout(layout, *request.add_layouts());
  absl::Status status =
      connection_->Invoke(kVerb, &proto::Worker::Stub::QueryTensorBytes, request, reply);
  if (status.ok() && (reply.bytes_size() != 1 || reply.bytes(0) < extent)) {
    status = connection_->Nonsense(
        kVerb, absl::StrCat(reply.bytes_size(), " answers to 1 question, or fewer than the ",
                            extent, " bytes of the tensor"));
  }
  if (!status.ok()) {
    if (connection_->logger() != nullptr) connection_->logger()->Warning(StdView(status.message()));
    return extent;
  }
  MutexLock lock(mutex_);
  if (tensor_bytes_.size() >= kMaxRememberedLayouts) tensor_bytes_.clear();
  tensor_bytes_[std::move(key)] = reply.bytes(0);
  return reply.bytes(0);
}

absl::StatusOr<std::unique_ptr<Buffer>> RemoteBufferType::Allocate(int64_t bytes,
                                                                   BufferUsage usage) {
  constexpr std::string_view kVerb = "AllocateBuffer";
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(device_.name(), ": ", bytes, " bytes"));
  }
  if (bytes > max_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(device_.name(), ": cannot allocate ", bytes,
                                                     " bytes at once, at most ", max_bytes()));
  }
  connection_->FlushFrees();
  proto::AllocateBufferRequest request;
  proto::AllocateBufferReply reply;
  request.set_device(device_.position());
  request.set_bytes(bytes);
  request.set_usage(static_cast<uint32_t>(usage));
  RETURN_IF_ERROR(connection_->Invoke(kVerb, &proto::Worker::Stub::AllocateBuffer, request, reply));
  return std::make_unique<RemoteBuffer>(connection_, device_, reply.buffer(), bytes, usage);
}

RemoteBuffer::RemoteBuffer(std::shared_ptr<WorkerConnection> connection, RemoteDevice& device,
                           int64_t handle, int64_t bytes, BufferUsage usage)
    : connection_(std::move(connection)),
      device_(device),
      handle_(handle),
      bytes_(bytes),
      usage_(usage) {}

RemoteBuffer::~RemoteBuffer() { connection_->FreeLater(handle_); }

BufferType& RemoteBuffer::type() const { return device_.buffer_type(); }

absl::Status RemoteBuffer::Set(int64_t offset, const void* data, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  const auto* from = static_cast<const char*>(data);
  proto::WriteBufferRequest request;
  request.set_buffer(handle_);
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(bytes - done, kPieceBytes);
    request.set_offset(offset + done);
    request.set_data(from + done, static_cast<size_t>(piece));
    proto::WriteBufferReply reply;
    RETURN_IF_ERROR(
        connection_->Invoke("WriteBuffer", &proto::Worker::Stub::WriteBuffer, request, reply));
    done += piece;
  }
  return absl::OkStatus();
}

absl::Status RemoteBuffer::Get(int64_t offset, void* data, int64_t bytes) {
  constexpr std::string_view kVerb = "ReadBuffer";
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  auto* to = static_cast<char*>(data);
  proto::ReadBufferRequest request;
  request.set_buffer(handle_);
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(bytes - done, kPieceBytes);
    request.set_offset(offset + done);
    request.set_bytes(piece);
    proto::ReadBufferReply reply;
    RETURN_IF_ERROR(connection_->Invoke(kVerb, &proto::Worker::Stub::ReadBuffer, request, reply));
    if (static_cast<int64_t>(reply.data().size()) != piece) {
      return connection_->Nonsense(kVerb,
                                   absl::StrCat(reply.data().size(), " bytes instead of ", piece));
    }
    std::memcpy(to + done, reply.data().data(), static_cast<size_t>(piece));
    done += piece;
  }
  return absl::OkStatus();
}

absl::Status RemoteBuffer::Fill(int64_t offset, uint8_t value, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  proto::FillBufferRequest request;
  request.set_buffer(handle_);
  request.set_value(value);
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(bytes - done, kFillBytes);
    request.set_offset(offset + done);
    request.set_bytes(piece);
    proto::FillBufferReply reply;
    RETURN_IF_ERROR(
        connection_->Invoke("FillBuffer", &proto::Worker::Stub::FillBuffer, request, reply));
    done += piece;
  }
  return absl::OkStatus();
}

}  // namespace weft
