// One connection of a port, without the gRPC side of it: what is to be written next, and large
// messages on their way in both directions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "common/transport/inbox.h"
#include "proto/worker.pb.h"

namespace weft {

// The gRPC side of a link. Called with the port's lock held; calls back from gRPC's threads.
class DataStream {
 public:
  virtual ~DataStream() = default;
  // Starts to write; `frame` stays as it is until the port is told that it was written.
  virtual void StartFrame(const proto::DataMessage& frame) = 0;
  // Ends the stream soon.
  virtual void Cancel() = 0;
};

// Guarded by the mutex of its port.
class DataLink {
 public:
  DataLink(int32_t peer, Inbox& inbox, DataStream& stream)
      : peer_(peer), inbox_(inbox), stream_(stream) {}

  int32_t peer() const { return peer_; }
  // Dangles once the port heard that the stream is over.
  DataStream& stream() { return stream_; }
  // Bytes of payloads that were given to Post and have not left.
  int64_t outgoing_bytes() const { return outgoing_bytes_; }

  // Writes a frame without payload of its own: the first ones of a connection.
  void PostControl(proto::DataMessage frame);
  // Takes a message: writes it, or announces it and keeps the payload.
  void Post(const MessageHeader& header, std::string payload);
  // Has the peer send what it announced.
  void Fetch(int64_t inbox_ticket, int64_t bytes);

  // What the peer wrote. Errors: INVALID_ARGUMENT for what no honest peer writes; then the link is
  // to be closed.
  absl::Status Take(proto::DataMessage& frame);
  // The frame that was started has been written; starts the next one.
  void Written();
  // Nothing is written or taken any more.
  void Close();
  // Whether the inbox knows an announcement by this ticket from this link.
  bool Holds(int64_t inbox_ticket) const { return incoming_by_inbox_.contains(inbox_ticket); }

 private:
  struct Parcel {
    std::string payload;
    size_t written = 0;
  };
  struct Incoming {
    int64_t inbox_ticket = 0;
    int64_t bytes = 0;
    bool fetched = false;
    Payload payload;
    int64_t received = 0;
  };

  absl::Status TakeMessage(proto::DataMessage& frame);
  absl::Status TakeAnnouncement(const proto::DataMessage& frame);
  absl::Status TakePiece(const proto::DataMessage& frame);
  void WriteNext();

  const int32_t peer_;
  Inbox& inbox_;
  DataStream& stream_;
  bool closed_ = false;
  bool writing_ = false;
  proto::DataMessage frame_;  // being written
  int64_t frame_bytes_ = 0;   // of its payload
  std::deque<proto::DataMessage> urgent_;
  std::deque<int64_t> sending_;        // tickets of parcels that were asked for
  std::map<int64_t, Parcel> parcels_;  // announced, by our tickets
  int64_t next_ticket_ = 1;
  int64_t outgoing_bytes_ = 0;
  std::map<int64_t, Incoming> incoming_;          // by the peer's tickets
  std::map<int64_t, int64_t> incoming_by_inbox_;  // to the peer's tickets
};

}  // namespace weft
