// What travels between the processes of a session: bytes with a key. A message is found by its key,
// never by when it arrived or by a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// An allocator whose vectors leave new bytes unset on resize: a payload is written over at once.
template <typename T>
struct UnsetAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};

// Bytes of a message, aligned as operator new does (16).
using Payload = std::vector<uint8_t, UnsetAllocator<uint8_t>>;

// Kinds are numbered by the user of a port.
inline constexpr uint32_t kMessageKinds = 32;

struct MessageHeader {
  uint32_t epoch = 0;
  uint32_t kind = 0;  // < kMessageKinds
  int64_t step = 0;   // >= 0
  int32_t id = 0;     // >= 0: an edge or a collective of the plan
  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};

struct Message {
  int32_t peer = -1;  // who sent it
  MessageHeader header;
  Payload payload;
};

constexpr uint32_t KindBit(uint32_t kind) { return uint32_t{1} << kind; }

// Which messages a reader wants; -1 means any.
struct MessageFilter {
  uint32_t kinds = ~uint32_t{0};  // a bit per kind
  int32_t peer = -1;
  int64_t step = -1;
  int32_t id = -1;
  // The loss of any peer ends the wait, not only of those that could send this: for what needs all.
  bool ends_with_any_peer = false;
  // Who waits long and can be woken late: it never polls, and leaves the driving of the port to
  // others while they come and go, until MessagePort::Wake.
  bool patient = false;

  // `header.kind` is below kMessageKinds.
  bool Matches(int32_t from, const MessageHeader& header) const {
    return (kinds & KindBit(header.kind)) != 0 && (peer < 0 || peer == from) &&
           (step < 0 || step == header.step) && (id < 0 || id == header.id);
  }
};

// "kind 2, step 7, id 1", for people.
std::string MessageHeaderText(const MessageHeader& header);
// "kinds 0x6, peer 1, step 7, any id", for people.
std::string MessageFilterText(const MessageFilter& filter);

}  // namespace weft
