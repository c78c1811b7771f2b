#include "common/http/connection_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft {
namespace {

// Numeric forms, as httplib reports them.
void Describe(const sockaddr_storage& address, std::string& ip, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    if (::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size()) != nullptr) ip = text.data();
    port = ntohs(v4->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    if (::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size()) != nullptr)
      ip = text.data();
    port = ntohs(v6->sin6_port);
  }
}

}  // namespace

bool ConnectionStream::Await(short events, Clock::TimePoint until) {
  if (Poll(events, clock_.Now())) return true;
  if (!waiting_.Begin(socket_, between_requests_, began_)) return false;
  const bool ready = Poll(events, until);
  waiting_.End(socket_);
  return ready;
}

bool ConnectionStream::Poll(short events, Clock::TimePoint until) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.Now()).count();
    const int wait = static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
    pollfd poll = {socket_, events, 0};
    const int ready = ::poll(&poll, 1, wait);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left <= 0) return false;
  }
}

bool ConnectionStream::AwaitRequest(bool between_requests, std::chrono::milliseconds patience) {
  if (begin_ < end_) return true;
  between_requests_ = between_requests;
  began_ = clock_.Now();
  const bool there = Await(POLLIN, began_ + patience);
  between_requests_ = false;
  return there;
}

ssize_t ConnectionStream::Fill() {
  if (bytes_left_ <= 0) {
    over_bytes_ = true;
    return -1;
  }
  if (!Await(POLLIN, deadline_)) {
    over_deadline_ = true;
    return -1;
  }
  ssize_t count = 0;
  do {
    count = ::recv(socket_, buffer_.data(),
                   std::min<size_t>(buffer_.size(), static_cast<size_t>(bytes_left_)), 0);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return count;
  bytes_left_ -= count;
  begin_ = 0;
  end_ = static_cast<size_t>(count);
  return count;
}

ssize_t ConnectionStream::read(char* to, size_t size) {
  if (begin_ == end_) {
    const ssize_t count = Fill();
    if (count <= 0) return count;
  }
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t ConnectionStream::write(const char* from, size_t size) {
  size_t done = 0;
  while (done < size && !broken_) {
    if (!Await(POLLOUT, clock_.Now() + write_timeout_)) {
      broken_ = true;
      break;
    }
    const ssize_t count = ::send(socket_, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      broken_ = true;
    }
  }
  return broken_ ? -1 : static_cast<ssize_t>(done);
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    Describe(address, ip, port);
  }
}

void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    Describe(address, ip, port);
  }
}

}  // namespace weft
