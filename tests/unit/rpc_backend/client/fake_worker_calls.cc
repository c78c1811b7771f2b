// The calls of a FakeWorker's control plane that own things: buffers, programs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {

// --- questions ---

grpc::Status FakeWorker::QuerySupport(grpc::ServerContext* context,
                                      const proto::QuerySupportRequest* request,
                                      proto::QuerySupportReply* reply) {
  return Handle("QuerySupport", context, [&] {
    for (const int32_t node : request->nodes()) {
      proto::NodeSupport& support = *reply->add_nodes();
      support.set_ok(true);
      support.set_wants(request->device() == 0);
      support.set_workspace_bytes(1000 + node);
    }
    if (edit_support) edit_support(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::QueryTensorBytes(grpc::ServerContext* context,
                                          const proto::QueryTensorBytesRequest* request,
                                          proto::QueryTensorBytesReply* reply) {
  return Handle("QueryTensorBytes", context, [&] {
    for (const proto::TensorLayout& layout : request->layouts()) {
      reply->add_bytes(layout.ne(0) * layout.ne(1) * 8 + 512);
    }
    if (edit_tensor_bytes) edit_tensor_bytes(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::Statistics(grpc::ServerContext* context, const proto::StatisticsRequest*,
                                    proto::StatisticsReply* reply) {
  return Handle("Statistics", context, [&] {
    reply->set_steps(5);
    reply->set_compute_seconds(0.5);
    proto::PeerStatistics& peer = *reply->add_peers();
    peer.set_peer(1);
    peer.set_transport("grpc");
    peer.set_bytes_sent(77);
    if (edit_statistics) edit_statistics(*reply);
    return grpc::Status::OK;
  });
}

// --- buffers ---

grpc::Status FakeWorker::AllocateBuffer(grpc::ServerContext* context,
                                        const proto::AllocateBufferRequest* request,
                                        proto::AllocateBufferReply* reply) {
  return Handle("AllocateBuffer", context, [&] {
    MutexLock lock(mutex_);
    reply->set_buffer(next_++);
    buffers_[reply->buffer()] = std::string(static_cast<size_t>(request->bytes()), '\0');
    if (edit_allocate) edit_allocate(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::FreeBuffer(grpc::ServerContext* context,
                                    const proto::FreeBufferRequest* request,
                                    proto::FreeBufferReply*) {
  return Handle("FreeBuffer", context, [&] {
    MutexLock lock(mutex_);
    if (buffers_.erase(request->buffer()) == 0) {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such buffer");
    }
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::FillBuffer(grpc::ServerContext* context,
                                    const proto::FillBufferRequest* request,
                                    proto::FillBufferReply*) {
  return Handle("FillBuffer", context, [&] {
    MutexLock lock(mutex_);
    std::memset(buffers_.at(request->buffer()).data() + request->offset(),
                static_cast<int>(request->value()), static_cast<size_t>(request->bytes()));
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::WriteBuffer(grpc::ServerContext* context,
                                     const proto::WriteBufferRequest* request,
                                     proto::WriteBufferReply*) {
  return Handle("WriteBuffer", context, [&] {
    MutexLock lock(mutex_);
    buffers_.at(request->buffer())
        .replace(static_cast<size_t>(request->offset()), request->data().size(), request->data());
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::ReadBuffer(grpc::ServerContext* context,
                                    const proto::ReadBufferRequest* request,
                                    proto::ReadBufferReply* reply) {
  return Handle("ReadBuffer", context, [&] {
    MutexLock lock(mutex_);
    reply->set_data(
        buffers_.at(request->buffer())
            .substr(static_cast<size_t>(request->offset()), static_cast<size_t>(request->bytes())));
    if (edit_read) edit_read(*reply);
    return grpc::Status::OK;
  });
}

// --- programs ---

grpc::Status FakeWorker::InstallProgram(grpc::ServerContext* context,
                                        const proto::InstallProgramRequest*,
                                        proto::InstallProgramReply* reply) {
  return Handle("InstallProgram", context, [&] {
    MutexLock lock(mutex_);
    reply->set_program(next_++);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::Instantiate(grpc::ServerContext* context, const proto::InstantiateRequest*,
                                     proto::InstantiateReply* reply) {
  return Handle("Instantiate", context, [&] {
    MutexLock lock(mutex_);
    reply->set_instance(next_++);
    if (edit_instantiate) edit_instantiate(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::ReleaseInstance(grpc::ServerContext* context,
                                         const proto::ReleaseInstanceRequest*,
                                         proto::ReleaseInstanceReply*) {
  return Handle("ReleaseInstance", context, [&] { return grpc::Status::OK; });
}

}  // namespace weft
