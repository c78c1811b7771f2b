#include "common/http/http_listener.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/http/chunked_body.h"
#include "common/http/connection_stream.h"
#include "common/http/connection_threads.h"
#include "common/http/connection_watcher.h"
#include "common/http/message_exchange.h"
#include "common/http/waiting_clients.h"

namespace weft {
namespace {

constexpr int kBacklog = 1024;
// What is read of a body that nobody wants, so that the client reads the reply instead of a reset.
constexpr int64_t kDrainedBytes = 1 << 20;
constexpr std::chrono::milliseconds kDrainTime{1000};
// Framing of chunked bodies may take this many times their bytes.
constexpr int64_t kChunkOverhead = 4;

// A connection, and the request that it is at.
class Connection final : public ClientWatch {
 public:
  Connection(int socket, const ListenerOptions& options, WaitingClients& waiting,
             const Clock& clock, ConnectionWatcher& watcher)
      : stream(socket, options.write_timeout, waiting, clock), watcher_(watcher) {}

  std::shared_ptr<void> OnLeft(std::function<void()> left) override {
    watcher_.Add(stream.socket(), std::move(left));
    return {nullptr, [this](void*) { watcher_.Remove(stream.socket()); }};
  }

  ConnectionStream stream;
  bool keep = true;     // for another request
  bool served = false;  // a request
  bool unread = false;  // the client may still be sending a body
  bool replying = false;

 private:
  ConnectionWatcher& watcher_;
};

// How a request leads to its connection: httplib hands nothing of ours to handlers, so this sits in
// a member that only its clients use.
struct ConnectionTag {
  Connection* connection;
  bool operator()(uint64_t, uint64_t) const { return true; }
};

Connection& ConnectionOf(const httplib::Request& request) {
  return *request.progress.target<ConnectionTag>()->connection;
}

}  // namespace

class HttpListener::Server final : public httplib::Server {
 public:
  Server(const ListenerOptions& options, ListenerHandlers handlers, const Clock& clock,
         std::unique_ptr<ConnectionWatcher> watcher);

  // The port. Errors: of the system.
  absl::StatusOr<int> Bind();
  // Takes connections until Stop.
  void Run() { listen_after_bind(); }
  void Stop();
  bool AwaitReplies(Clock::TimePoint deadline);

 private:
  bool process_and_close_socket(socket_t socket) override;
  void Serve(Connection& connection);
  // Until a request comes. False: none does, or others need the thread.
  bool AwaitRequest(Connection& connection);
  void ServeRequest(Connection& connection);
  void BeginReply(Connection& connection);
  // Does nothing where none began.
  void EndReply(Connection& connection);
  // What httplib ends without a word: a request line beyond the limits.
  void RefuseHead(Connection& connection);
  void Drain(Connection& connection) const;
  // Replies without looking at a body, where there is none or nobody wants it.
  HandlerResponse Route(const httplib::Request& request, httplib::Response& response);
  void TakeBody(const httplib::Request& request, httplib::Response& response,
                const httplib::ContentReader& read);
  void Explain(const httplib::Request& request, httplib::Response& response);

  const ListenerOptions options_;
  const ListenerHandlers handlers_;
  const Clock& clock_;
  const std::unique_ptr<ConnectionWatcher> watcher_;
  ConnectionThreads* threads_ = nullptr;  // httplib's, while it runs
  WaitingClients waiting_;
  Mutex mutex_;
  std::set<int> sockets_ ABSL_GUARDED_BY(mutex_);
  size_t replying_ ABSL_GUARDED_BY(mutex_) = 0;  // requests whose head is read
  CondVar replied_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

HttpListener::Server::Server(const ListenerOptions& options, ListenerHandlers handlers,
                             const Clock& clock, std::unique_ptr<ConnectionWatcher> watcher)
    : options_(options),
      handlers_(std::move(handlers)),
      clock_(clock),
      watcher_(std::move(watcher)),
      waiting_([this] { return threads_->Crowded(); }, options.cut_slow_clients) {
  new_task_queue = [this] {
    auto threads =
        std::make_unique<ConnectionThreads>(options_.threads, [this] { waiting_.CutOne(); });
    threads_ = threads.get();
    return threads.release();  // httplib deletes it
  };
  set_tcp_nodelay(true);
  set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(options_.idle_timeout).count());
  set_keep_alive_max_count(1'000'000);
  // Not SO_REUSEPORT: two servers would share the port, and nobody would know.
  set_socket_options([](socket_t socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return Route(request, response);
  });
  Post(".*", [this](const httplib::Request& request, httplib::Response& response,
                    const httplib::ContentReader& read) { TakeBody(request, response, read); });
  set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
    Explain(request, response);
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response,
                           const std::exception_ptr&) { response.status = 500; });
}

absl::StatusOr<int> HttpListener::Server::Bind() {
  const auto failed = [&] {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.host, " port ",
                                               options_.port, ": ", std::strerror(errno)));
  };
  errno = EADDRNOTAVAIL;  // of names that nobody knows, httplib says nothing
  int port = options_.port;
  if (port == 0) {
    port = bind_to_any_port(options_.host);
    if (port <= 0) return failed();
  } else if (!bind_to_port(options_.host, port)) {
    return failed();
  }
  // httplib's own backlog is 5.
  if (::listen(svr_sock_, kBacklog) != 0) return failed();
  return port;
}

void HttpListener::Server::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  // Once it runs, which it does soon: else there is nothing to stop yet.
  while (!is_running() && svr_sock_ != INVALID_SOCKET) std::this_thread::yield();
  stop();
}

bool HttpListener::Server::process_and_close_socket(socket_t socket) {
  Connection connection(socket, options_, waiting_, clock_, *watcher_);
  {
    MutexLock lock(mutex_);
    sockets_.insert(socket);
    if (stopping_) connection.keep = false;
  }
  handlers_.connections(1);
  if (connection.keep) Serve(connection);
  handlers_.connections(-1);
  MutexLock lock(mutex_);
  sockets_.erase(socket);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return true;
}

void HttpListener::Server::Serve(Connection& connection) {
  // httplib, regular expressions and the standard library report what they cannot do by exceptions;
  // they end the connection.
  try {
    while (connection.keep && AwaitRequest(connection)) ServeRequest(connection);
    if (connection.unread) Drain(connection);
  } catch (const std::exception&) {
    connection.keep = false;
  }
  EndReply(connection);
}

bool HttpListener::Server::AwaitRequest(Connection& connection) {
  // The first request of a connection is on its way, and nobody would repeat it.
  return connection.stream.AwaitRequest(
      connection.served, connection.served ? options_.idle_timeout : options_.head_timeout);
}

void HttpListener::Server::ServeRequest(Connection& connection) {
  connection.stream.SetLimits(options_.most_head_bytes, clock_.Now() + options_.head_timeout);
  // Where others wait for a thread, each connection has one request.
  const bool last = threads_->Crowded();
  bool closed = false;
  bool understood = false;  // the head
  const bool served =
      process_request(connection.stream, last, closed, [&](httplib::Request& request) {
        understood = true;
        BeginReply(connection);
        request.progress = ConnectionTag{&connection};
        request.ranges.clear();  // replies are short; parts of them serve attacks only
        connection.unread = AnnouncedBytes(request) != 0;
      });
  connection.served = true;
  EndReply(connection);
  if (!understood) {
    connection.unread = true;
    if (!served) RefuseHead(connection);
  }
  if (!served || last || closed || connection.unread) connection.keep = false;
}

void HttpListener::Server::BeginReply(Connection& connection) {
  MutexLock lock(mutex_);
  connection.replying = true;
  ++replying_;
}

void HttpListener::Server::EndReply(Connection& connection) {
  MutexLock lock(mutex_);
  if (!std::exchange(connection.replying, false)) return;
  --replying_;
  if (replying_ == 0) replied_.NotifyAll();
}

bool HttpListener::Server::AwaitReplies(Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  while (replying_ > 0) {
    if (!replied_.WaitUntil(mutex_, deadline)) return replying_ == 0;
  }
  return true;
}

void HttpListener::Server::RefuseHead(Connection& connection) {
  const bool slow = connection.stream.over_deadline();
  if (!slow && !connection.stream.over_bytes()) return;  // the client left
  HttpRequest head;
  head.id = handlers_.next_id();
  const HttpReply reply = handlers_.broken(
      head, slow ? 408 : 431, slow ? "the head came too slowly" : "the head is too long");
  const std::string text = absl::StrCat(
      "HTTP/1.1 ", reply.status, slow ? " Request Timeout" : " Request Header Fields Too Large",
      "\r\nConnection: close\r\nContent-Type: ", reply.content_type,
      "\r\nContent-Length: ", reply.body.size(), "\r\n\r\n", reply.body);
  connection.stream.write(text.data(), text.size());
}

void HttpListener::Server::Drain(Connection& connection) const {
  ::shutdown(connection.stream.socket(), SHUT_WR);
  connection.stream.SetLimits(kDrainedBytes, clock_.Now() + kDrainTime);
  std::array<char, 4096> ignored;
  while (connection.stream.read(ignored.data(), ignored.size()) > 0) {
  }
}

httplib::Server::HandlerResponse HttpListener::Server::Route(const httplib::Request& request,
                                                             httplib::Response& response) {
  Connection& connection = ConnectionOf(request);
  const HttpRequest head = HeadOf(request, handlers_.next_id());
  std::optional<HttpReply> reply;
  if (const char* fault = HeadFault(request)) {
    reply = handlers_.broken(head, 400, fault);
    connection.unread = true;
  } else {
    reply = handlers_.refuse(head, AnnouncedBytes(request));
  }
  if (!reply && request.method == "POST" && !SaysLength(request)) {
    reply = handlers_.broken(head, 411, "want a Content-Length, or Transfer-Encoding: chunked");
    connection.unread = true;
  }
  if (!reply && request.method != "POST") reply = handlers_.handle(head, connection);
  if (!reply) return HandlerResponse::Unhandled;
  if (connection.unread) response.set_header("Connection", "close");
  SetReply(*std::move(reply), request, response);
  return HandlerResponse::Handled;
}

void HttpListener::Server::TakeBody(const httplib::Request& request, httplib::Response& response,
                                    const httplib::ContentReader& read) {
  Connection& connection = ConnectionOf(request);
  const auto most = static_cast<int64_t>(options_.most_body_bytes);
  connection.stream.SetLimits(kChunkOverhead * most + options_.most_head_bytes,
                              clock_.Now() + options_.body_timeout);
  HttpRequest whole = HeadOf(request, handlers_.next_id());
  bool too_long = false;
  bool complete = false;
  if (request.has_header("Transfer-Encoding")) {
    const ChunkedBody outcome =
        ReadChunkedBody(connection.stream, options_.most_body_bytes, whole.body);
    complete = outcome == ChunkedBody::kWhole;
    too_long = outcome == ChunkedBody::kTooLong;
  } else {
    complete = read([&](const char* bytes, size_t size) {
      too_long = whole.body.size() + size > options_.most_body_bytes;
      if (!too_long) whole.body.append(bytes, size);
      return !too_long;
    });
  }
  connection.unread = !complete;
  HttpReply reply;
  if (too_long || connection.stream.over_bytes()) {
    reply = handlers_.broken(
        whole, 413, absl::StrCat("the body has more than ", options_.most_body_bytes, " bytes"));
  } else if (connection.stream.over_deadline()) {
    reply = handlers_.broken(whole, 408, "the body came too slowly");
  } else if (!complete) {
    reply = handlers_.broken(whole, 400, "the body is cut short or badly encoded");
  } else {
    reply = handlers_.handle(whole, connection);
  }
  // A body of unknown length ends with the connection.
  if (reply.stream && request.version == "HTTP/1.0") connection.keep = false;
  if (!complete || !connection.keep) response.set_header("Connection", "close");
  SetReply(std::move(reply), request, response);
}

void HttpListener::Server::Explain(const httplib::Request& request, httplib::Response& response) {
  if (!response.body.empty() || response.has_header("X-Request-Id")) return;
  const HttpRequest head = HeadOf(request, handlers_.next_id());
  const int status = response.status;
  const char* what = status == 414   ? "the path is too long"
                     : status >= 500 ? "the request failed here"
                                     : "the head of the request is no HTTP, too long or too slow";
  response.set_header("Connection", "close");
  SetReply(handlers_.broken(head, status, what), request, response);
}

HttpListener::HttpListener(std::unique_ptr<Server> server, int port)
    : server_(std::move(server)), port_(port) {}

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(const ListenerOptions& options,
                                                                  ListenerHandlers handlers,
                                                                  const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<ConnectionWatcher> watcher, ConnectionWatcher::Create());
  auto server = std::make_unique<Server>(options, std::move(handlers), clock, std::move(watcher));
  ASSIGN_OR_RETURN(const int port, server->Bind());
  std::unique_ptr<HttpListener> listener(new HttpListener(std::move(server), port));
  ASSIGN_OR_RETURN(listener->thread_,
                   StartThread([server = listener->server_.get()] { server->Run(); }));
  return listener;
}

bool HttpListener::AwaitReplies(Clock::TimePoint deadline) {
  return server_->AwaitReplies(deadline);
}

HttpListener::~HttpListener() {
  if (!thread_.joinable()) return;
  server_->Stop();
  thread_.join();
}

}  // namespace weft
