// How a UcxWorker sends and receives.
#include <algorithm>
#include <utility>

#include "common/transport/transport.h"
#include "common/transport/ucx/ucx_worker.h"
#include "common/transport/ucx/ucx_worker_state.h"

namespace weft {
namespace {

absl::Span<const uint8_t> Bytes(const void* data, size_t bytes) {
  return {static_cast<const uint8_t*>(data), bytes};
}

}  // namespace

// --- sending ---------------------------------------------------------------------------------

absl::Status UcxWorker::SendControl(UcxConnection& connection, unsigned id,
                                    absl::Span<const uint8_t> bytes) {
  auto send = std::make_unique<Outgoing>();
  send->connection = &connection;
  send->id = id;
  std::copy(bytes.begin(), bytes.end(), send->header.begin());
  send->header_bytes = bytes.size();
  return Post(std::move(send), UCP_AM_SEND_FLAG_EAGER);
}

absl::Status UcxWorker::SendData(UcxConnection& connection, const MessageHeader& header,
                                 Payload payload) {
  auto send = std::make_unique<Outgoing>();
  send->connection = &connection;
  send->id = kDataMessage;
  const std::array<uint8_t, kDataHeaderBytes> encoded = EncodeDataHeader(header);
  std::copy(encoded.begin(), encoded.end(), send->header.begin());
  send->header_bytes = encoded.size();
  const bool large = static_cast<int64_t>(payload.size()) > kEagerBytes;
  send->payload = std::move(payload);
  return Post(std::move(send), large ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
}

absl::Status UcxWorker::Post(std::unique_ptr<Outgoing> send, uint32_t flags) {
  Outgoing& posted = *send;
  posted.worker = this;
  sends_.push_front(std::move(send));
  posted.place = sends_.begin();
  posted.connection->outgoing_bytes += static_cast<int64_t>(posted.payload.size());
  ucp_request_param_t param = {};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = flags | UCP_AM_SEND_FLAG_REPLY;
  param.cb.send = &OnSendDone;
  param.user_data = &posted;
  ucs_status_ptr_t request =
      ucp_am_send_nbx(posted.connection->endpoint, posted.id, posted.header.data(),
                      posted.header_bytes, posted.payload.data(), posted.payload.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return absl::OkStatus();
  const ucs_status_t status = UCS_PTR_STATUS(request);
  Finish(posted, status);
  return status == UCS_OK ? absl::OkStatus() : UcxError("UCX does not send", status);
}

void UcxWorker::OnSendDone(void* request, ucs_status_t status, void* send) {
  ucp_request_free(request);
  auto& posted = *static_cast<Outgoing*>(send);
  posted.worker->Finish(posted, status);
}

void UcxWorker::Finish(Outgoing& send, ucs_status_t status) {
  UcxConnection* connection = send.connection;
  const int64_t bytes = static_cast<int64_t>(send.payload.size());
  pool_.Give(std::move(send.payload));
  sends_.erase(send.place);
  if (connection == nullptr) return;
  connection->outgoing_bytes -= bytes;
  if (status != UCS_OK) OnError(this, connection->endpoint, status);
  events_.OnSent(*connection);
}

void UcxWorker::StartFlush() {
  for (const auto& connection : connections_) {
    if (connection->failed || !connection->heard || connection->peer < 0) continue;
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = &OnFlushDone;
    param.user_data = this;
    if (UCS_PTR_IS_PTR(ucp_ep_flush_nbx(connection->endpoint, &param))) ++flushes_pending_;
  }
}

void UcxWorker::OnFlushDone(void* request, ucs_status_t /*status*/, void* self) {
  ucp_request_free(request);
  --static_cast<UcxWorker*>(self)->flushes_pending_;
}

void UcxWorker::OnCloseDone(void* request, ucs_status_t /*status*/, void* self) {
  ucp_request_free(request);
  --static_cast<UcxWorker*>(self)->closes_pending_;
}

// --- receiving -------------------------------------------------------------------------------

UcxConnection* UcxWorker::Find(const ucp_am_recv_param_t* param) {
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return nullptr;
  const auto found = by_endpoint_.find(param->reply_ep);
  if (found == by_endpoint_.end()) return nullptr;
  found->second->heard = true;
  return found->second;
}

ucs_status_t UcxWorker::OnHelloMessage(void* self, const void* header, size_t header_bytes,
                                       void* /*data*/, size_t /*bytes*/,
                                       const ucp_am_recv_param_t* param) {
  auto& worker = *static_cast<UcxWorker*>(self);
  UcxConnection* connection = worker.Find(param);
  if (connection == nullptr || connection->proven) return UCS_OK;
  if (!connection->accepted || connection->greeted) {
    worker.events_.OnIntrusion(*connection);
    return UCS_OK;
  }
  connection->greeted = true;
  // Longer ones are no such message; one byte more is enough to see that.
  const absl::Span<const uint8_t> bytes = Bytes(header, std::min(header_bytes, kHelloBytes + 1));
  Deferred& deferred = worker.deferred_.emplace_back();
  deferred.what = Deferred::What::kHello;
  deferred.connection = connection;
  deferred.bytes.assign(bytes.begin(), bytes.end());
  return UCS_OK;
}

template <unsigned kId>
ucs_status_t UcxWorker::OnControlMessage(void* self, const void* header, size_t header_bytes,
                                         void* /*data*/, size_t /*bytes*/,
                                         const ucp_am_recv_param_t* param) {
  auto& worker = *static_cast<UcxWorker*>(self);
  UcxConnection* connection = worker.Find(param);
  if (connection != nullptr && !connection->proven) {
    worker.events_.OnControl(*connection, kId, Bytes(header, header_bytes));
  }
  return UCS_OK;
}

template ucs_status_t UcxWorker::OnControlMessage<kChallengeMessage>(void*, const void*, size_t,
                                                                     void*, size_t,
                                                                     const ucp_am_recv_param_t*);
template ucs_status_t UcxWorker::OnControlMessage<kProofMessage>(void*, const void*, size_t, void*,
                                                                 size_t,
                                                                 const ucp_am_recv_param_t*);
template ucs_status_t UcxWorker::OnControlMessage<kRefusalMessage>(void*, const void*, size_t,
                                                                   void*, size_t,
                                                                   const ucp_am_recv_param_t*);

ucs_status_t UcxWorker::OnDataMessage(void* self, const void* header, size_t header_bytes,
                                      void* data, size_t bytes, const ucp_am_recv_param_t* param) {
  auto& worker = *static_cast<UcxWorker*>(self);
  UcxConnection* connection = worker.Find(param);
  if (connection == nullptr) return UCS_OK;
  if (!connection->proven) {
    worker.events_.OnIntrusion(*connection);
    return UCS_OK;  // UCX tells the sender of a large one that it is done
  }
  const absl::Span<const uint8_t> encoded = Bytes(header, header_bytes);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    const std::optional<int64_t> ticket =
        worker.events_.OnOffer(*connection, encoded, static_cast<int64_t>(bytes));
    if (!ticket.has_value()) return UCS_OK;  // UCX tells the sender that it is done
    worker.offers_[*ticket] = data;
    return UCS_INPROGRESS;
  }
  const absl::Span<const uint8_t> content = Bytes(data, bytes);
  worker.events_.OnMessage(*connection, encoded, Payload(content.begin(), content.end()));
  return UCS_OK;
}

void UcxWorker::Fetch(int64_t ticket, int64_t bytes) {
  const auto offer = offers_.find(ticket);
  if (offer == offers_.end()) return;
  void* descriptor = offer->second;
  offers_.erase(offer);
  Incoming& fetch = *fetches_.emplace_front(std::make_unique<Incoming>());
  fetch.worker = this;
  fetch.ticket = ticket;
  fetch.payload = pool_.Take(bytes);
  fetch.place = fetches_.begin();
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &OnFetchDone;
  param.user_data = &fetch;
  ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_, descriptor, fetch.payload.data(), fetch.payload.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return;
  OnFetchDone(nullptr, UCS_PTR_STATUS(request), fetch.payload.size(), &fetch);
}

void UcxWorker::OnFetchDone(void* request, ucs_status_t status, size_t /*bytes*/, void* fetch) {
  if (request != nullptr) ucp_request_free(request);
  auto& done = *static_cast<Incoming*>(fetch);
  UcxWorker& worker = *done.worker;
  const int64_t ticket = done.ticket;
  Payload payload = std::move(done.payload);
  worker.fetches_.erase(done.place);
  if (status == UCS_OK) {
    worker.events_.OnFetched(ticket, std::move(payload));
  } else {
    worker.events_.OnFetchFailed(ticket, absl::UnavailableError(ucs_status_string(status)));
  }
}

}  // namespace weft
