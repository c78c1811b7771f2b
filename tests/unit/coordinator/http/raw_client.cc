#include "tests/unit/coordinator/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace weft {

RawClient::RawClient(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    socket_ = socket;
  } else {
    ::close(socket);
  }
}

RawClient::~RawClient() { Close(); }

void RawClient::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool RawClient::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool RawClient::ReadSome(std::chrono::milliseconds patience) {
  pollfd poll = {socket_, POLLIN, 0};
  if (::poll(&poll, 1, static_cast<int>(patience.count())) <= 0) return false;
  std::array<char, 4096> bytes;
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    ended_ = true;
    return false;
  }
  all_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

const std::string& RawClient::ReadUntil(std::string_view mark, std::chrono::milliseconds patience) {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + patience;
  while (all_.find(mark) == std::string::npos && !ended_ && clock.Now() < deadline) {
    ReadSome(std::chrono::milliseconds(100));
  }
  return all_;
}

bool RawClient::ReadToEnd(std::chrono::milliseconds patience) {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + patience;
  while (!ended_ && clock.Now() < deadline) ReadSome(std::chrono::milliseconds(100));
  return ended_;
}

int RawClient::status() const {
  if (all_.rfind("HTTP/1.", 0) != 0 || all_.size() < 12) return 0;
  int status = 0;
  return absl::SimpleAtoi(all_.substr(9, 3), &status) ? status : 0;
}

std::string PostText(const std::string& path, const std::string& body) {
  return absl::StrCat("POST ", path,
                      " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      "Content-Length: ",
                      body.size(), "\r\n\r\n", body);
}

}  // namespace weft
