// A client that sends what it likes over a plain socket.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace weft {

class RawClient {
 public:
  // To 127.0.0.1. Check connected().
  explicit RawClient(int port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return socket_ >= 0; }
  // False: the server closed its side.
  bool Send(std::string_view bytes) const;
  // Until all that was read so far holds `mark`, the server closes, or `patience` is over. All that
  // was read so far.
  const std::string& ReadUntil(std::string_view mark,
                               std::chrono::milliseconds patience = std::chrono::seconds(10));
  // Until the server closes. False: it did not within `patience`.
  bool ReadToEnd(std::chrono::milliseconds patience = std::chrono::seconds(10));
  void Close();

  const std::string& all() const { return all_; }
  void Forget() { all_.clear(); }
  // Of the first reply: 200 of "HTTP/1.1 200 OK"; 0: there is none.
  int status() const;

 private:
  // What is there; false at the end.
  bool ReadSome(std::chrono::milliseconds patience);

  int socket_ = -1;
  bool ended_ = false;
  std::string all_;
};

// "POST /v1/completions" with this body.
std::string PostText(const std::string& path, const std::string& body);

}  // namespace weft
