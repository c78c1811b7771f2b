// The server over sockets: well-meaning, leaving, slow and hostile clients.
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/http/http_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/coordinator/http/fake_engine.h"
#include "tests/unit/coordinator/http/raw_client.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kEndOfChunks[] = "\r\n0\r\n\r\n";

std::string Repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() : tokenizer_(DemoTokenizer()), format_(*tokenizer_) {
    engine_.SetPlay(Says({"x"}));
    options_.port = 0;
    options_.model_name = "demo";
    options_.most_body_bytes = 100000;
  }

  void Start() {
    HttpServer::Parts parts;
    parts.engine = &engine_;
    parts.tokenizer = tokenizer_.get();
    parts.chat = &format_;
    ASSERT_OK_AND_ASSIGN(server_, HttpServer::Start(options_, parts, clock_, logger_));
  }

  // What comes back for these bytes until the server closes or `mark` is there.
  std::string Ask(const std::string& bytes, const std::string& mark = "\r\n\r\n") {
    RawClient client(server_->port());
    EXPECT_TRUE(client.connected());
    client.Send(bytes);
    return client.ReadUntil(mark);
  }
  int StatusOf(const std::string& bytes) {
    RawClient client(server_->port());
    client.Send(bytes);
    client.ReadUntil("\r\n\r\n");
    return client.status();
  }
  // The health port's metrics come to have this line.
  void ExpectMetric(const std::string& line) {
    EXPECT_TRUE(engine_.Await([&] {
      RawClient client(server_->health_port());
      client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      client.ReadToEnd();
      return client.all().find(line) != std::string::npos;
    })) << line;
  }
  void ExpectUp() {
    EXPECT_EQ(StatusOf("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    EXPECT_EQ(StatusOf(PostText("/v1/completions", R"({"prompt": "a"})")), 200);
  }

  FakeEngine engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  FakeFormat format_;
  SystemClock clock_;
  Logger logger_{"test", LogLevel::kError};
  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, OneConnection_CarriesRequestsOneAfterTheOther) {
  Start();
  RawClient client(server_->port());
  const std::string request = PostText("/v1/completions", R"({"prompt": "a"})");
  for (int i = 0; i < 20; ++i) {
    client.Forget();
    client.Send(request);
    EXPECT_THAT(client.ReadUntil("}}}"),
                AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"text\":\"x\""),
                      HasSubstr("X-Request-Id: req-")));
  }
  // Two at once, and both are answered.
  client.Forget();
  client.Send(request + "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.ReadToEnd());
  EXPECT_THAT(client.all(), AllOf(HasSubstr("text_completion"), HasSubstr("live\n")));
}

TEST_F(HttpServerTest, SplitRequests_AreReadByteByByte) {
  Start();
  RawClient client(server_->port());
  for (const char byte : PostText("/v1/completions", R"({"prompt": "a"})")) {
    ASSERT_TRUE(client.Send(std::string_view(&byte, 1)));
  }
  EXPECT_THAT(client.ReadUntil("}}}"), HasSubstr("text_completion"));
}

TEST_F(HttpServerTest, Bodies_MayComeInChunks) {
  Start();
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(head + "6\r\n{\"prom\r\n9\r\npt\": \"a\"}\r\n0\r\n\r\n"), 200);
  for (const char* size : {"zz", "-5", "+5", "", "0x5", "5 5", "fffffffffffffffff"}) {
    EXPECT_EQ(StatusOf(absl::StrCat(head, size, "\r\n{\"prom\r\n0\r\n\r\n")), 400) << size;
  }
  EXPECT_EQ(StatusOf(head + "6;x=y\r\n{\"prom\r\n9 \r\npt\": \"a\"}\r\n0\r\nA: b\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf(head + "6\r\n{\"promXX0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(head + "fffffffffffff\r\n{\"prom"), 413);
  EXPECT_EQ(StatusOf(head + Repeat("5;" + std::string(50, 'e') + "\r\naaaaa\r\n", 30000)), 413);
  ExpectUp();
}

TEST_F(HttpServerTest, Streams_ComeWhileTheyAreMade) {
  Start();
  engine_.SetPlay(nullptr);
  RawClient client(server_->port());
  client.Send(PostText("/v1/completions", R"({"prompt": "a", "stream": true})"));
  ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == 1; }));
  engine_.stream(0).Push({"first", {}});
  EXPECT_THAT(client.ReadUntil("first"), AllOf(HasSubstr("text/event-stream"), HasSubstr("first")));
  engine_.stream(0).Push({"second", {}});
  EXPECT_THAT(client.ReadUntil("second"), HasSubstr("second"));
  Says({})(engine_.request(0), engine_.stream(0));
  EXPECT_THAT(client.ReadUntil(kEndOfChunks), HasSubstr("data: [DONE]\n\n"));
  // The connection goes on.
  client.Forget();
  client.Send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("live\n"), HasSubstr("live\n"));
}

TEST_F(HttpServerTest, Streams_ToOldClients_EndWithTheConnection) {
  Start();
  RawClient client(server_->port());
  const std::string body = R"({"prompt": "a", "stream": true})";
  client.Send(
      absl::StrCat("POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: ",
                   body.size(), "\r\n\r\n", body));
  EXPECT_TRUE(client.ReadToEnd());
  EXPECT_THAT(client.all(), AllOf(HasSubstr("data: [DONE]\n\n"), Not(HasSubstr("chunked"))));
}

TEST_F(HttpServerTest, ClientsThatLeave_AreCancelledAtOnce) {
  Start();
  engine_.SetPlay(nullptr);
  // Before the first token: streamed or not, and with several choices.
  for (const char* body :
       {R"({"prompt": "a", "stream": true})", R"({"prompt": "a"})", R"({"prompt": "a", "n": 3})"}) {
    const int64_t before = engine_.submitted();
    const int64_t choices = std::string_view(body).find("\"n\"") == std::string::npos ? 1 : 3;
    RawClient client(server_->port());
    client.Send(PostText("/v1/completions", body));
    ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == before + choices; }));
    client.Close();
    EXPECT_TRUE(engine_.Await([&] { return engine_.cancelled() == before + choices; })) << body;
    for (int64_t i = before; i < before + choices; ++i) {
      engine_.stream(i).Finish(absl::CancelledError("the client left"), {});
    }
  }
  engine_.SetPlay(Says({"x"}));
  ExpectUp();
}

TEST_F(HttpServerTest, ManyStreams_AllComeAndProbesAreAnswered) {
  Start();
  engine_.SetPlay(nullptr);
  constexpr int kStreams = 250;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(clients.back()->connected());
    clients.back()->Send(PostText("/v1/completions", R"({"prompt": "a", "stream": true})"));
  }
  ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == kStreams; }));
  RawClient probe(server_->health_port());
  probe.Send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(probe.ReadUntil("ready\n"), StartsWith("HTTP/1.1 200"));
  ExpectMetric("weft_http_connections 250\n");
  // A quarter leaves.
  for (int i = 0; i < kStreams; i += 4) clients[i]->Close();
  EXPECT_TRUE(engine_.Await([&] { return engine_.cancelled() == (kStreams + 3) / 4; }));
  for (int i = 0; i < kStreams; ++i) Says({"token"})(engine_.request(i), engine_.stream(i));
  for (int i = 0; i < kStreams; ++i) {
    if (i % 4 == 0) continue;
    EXPECT_THAT(clients[i]->ReadUntil(kEndOfChunks),
                AllOf(HasSubstr("token"), HasSubstr("data: [DONE]\n\n")));
  }
}

TEST_F(HttpServerTest, MoreConnectionsThanThreads_WaitTheirTurn) {
  options_.most_connections = 2;
  Start();
  engine_.SetPlay(nullptr);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    clients.back()->Send(PostText("/v1/completions", R"({"prompt": "a"})"));
  }
  ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == 2; }));
  // Nobody starves the probes.
  RawClient probe(server_->health_port());
  probe.Send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(probe.ReadUntil("live\n"), HasSubstr("live\n"));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() > i; })) << i;
    Says({"token"})(engine_.request(i), engine_.stream(i));
  }
  for (const auto& client : clients) EXPECT_THAT(client->ReadUntil("}}}"), HasSubstr("token"));
}

TEST_F(HttpServerTest, OtherAddresses_WantKeysOrAWordThatNoneAreMeant) {
  HttpServer::Parts parts;
  parts.engine = &engine_;
  parts.tokenizer = tokenizer_.get();
  options_.host = "0.0.0.0";
  EXPECT_THAT(HttpServer::Start(options_, parts, clock_, logger_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--host 0.0.0.0"), HasSubstr("--api-key-file"),
                             HasSubstr("--no-api-key"))));
  options_.no_api_key = true;
  EXPECT_THAT(HttpServer::Start(options_, parts, clock_, logger_), IsOk());
  options_.no_api_key = false;
  options_.api_keys = {"key"};
  EXPECT_THAT(HttpServer::Start(options_, parts, clock_, logger_), IsOk());
}

TEST_F(HttpServerTest, Metrics_BeyondThisMachine_WantKeyOrToken) {
  const TemporaryFolder folder;
  std::ofstream(folder.File("token")) << "scrape\n";
  options_.api_keys = {"key"};
  const auto status = [&](const std::string& path, const std::string& bearer) {
    RawClient client(server_->health_port());
    client.Send("GET " + path + " HTTP/1.1\r\nHost: x\r\n" +
                (bearer.empty() ? "" : "Authorization: Bearer " + bearer + "\r\n") + "\r\n");
    client.ReadUntil("\r\n\r\n");
    return client.status();
  };
  Start();
  EXPECT_EQ(status("/metrics", ""), 200);  // a loopback address
  server_.reset();
  options_.health_host = "0.0.0.0";
  Start();
  EXPECT_EQ(status("/metrics", ""), 401);
  EXPECT_EQ(status("/metrics", "key"), 200);
  EXPECT_EQ(status("/metrics", "scrape"), 401);
  EXPECT_EQ(status("/livez", ""), 200);
  server_.reset();
  options_.metrics_token_file = folder.File("token");
  Start();
  EXPECT_EQ(status("/metrics", ""), 401);
  EXPECT_EQ(status("/metrics", "scrape"), 200);
  EXPECT_EQ(status("/metrics", "key"), 200);
  server_.reset();
  options_.metrics_token_file = folder.File("none");
  HttpServer::Parts parts;
  parts.engine = &engine_;
  parts.tokenizer = tokenizer_.get();
  EXPECT_THAT(HttpServer::Start(options_, parts, clock_, logger_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(HttpServerTest, HostileHeads_AreRefused) {
  options_.head_timeout_seconds = 1;
  Start();
  const std::string get = "GET /livez HTTP/1.1\r\nHost: localhost\r\n";
  const std::string post =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\n";
  const auto is_4xx = [&](const std::string& bytes) {
    const int status = StatusOf(bytes);
    return status >= 400 && status < 500;
  };
  EXPECT_TRUE(is_4xx("nonsense\r\n\r\n"));
  RawClient nonsense(server_->port());
  nonsense.Send("nonsense\r\n\r\n");
  EXPECT_TRUE(nonsense.ReadToEnd(std::chrono::seconds(5)));  // whatever follows is nothing better
  EXPECT_TRUE(is_4xx("GET /livez HTTP/9.9\r\n\r\n"));
  EXPECT_TRUE(is_4xx("GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(StatusOf("GET /" + std::string(200000, 'a') + " HTTP/1.1\r\n\r\n"), 431);
  EXPECT_TRUE(is_4xx(get + "X: " + std::string(100000, 'x') + "\r\n\r\n"));
  EXPECT_TRUE(is_4xx(get + Repeat("A: b\r\n", 30000) + "\r\n"));
  EXPECT_TRUE(is_4xx(post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}"));
  EXPECT_TRUE(is_4xx(post + "Content-Length: -5\r\n\r\n{}"));
  EXPECT_TRUE(is_4xx(post + "Content-Length: 99999999999999999999\r\n\r\n{}"));
  EXPECT_TRUE(is_4xx(post + "Content-Length: 99999999\r\n\r\n{}"));
  EXPECT_TRUE(is_4xx(post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}"));
  EXPECT_TRUE(is_4xx(post + "Transfer-Encoding: gzip\r\n\r\n{}"));
  EXPECT_EQ(StatusOf(post + "Content-Length: +15\r\n\r\n{\"prompt\": \"a\"}"), 400);
  EXPECT_EQ(StatusOf(post + "\r\n{\"prompt\": \"a\"}"), 411);
  EXPECT_EQ(StatusOf(get + "Host: localhost\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /livez HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /livez HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf(get + "Authorization: Bearer a" + std::string(1, '\0') + "\r\n\r\n"), 400);
  EXPECT_TRUE(is_4xx("OPTIONS * HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(is_4xx("TRACE /livez HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(is_4xx("GET /../../etc/passwd HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(is_4xx("GET /v1/models/%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  // Parts of a reply many times over would be a cheap way to make it long.
  EXPECT_EQ(StatusOf(get + "Range: bytes=0-" + Repeat(",0-", 1000) + "\r\n\r\n"), 200);
  ExpectUp();
}

// Whoever reaches the port for health may do nothing there, or something slowly.
TEST_F(HttpServerTest, SlowClientsOfTheHealthPort_DoNotSilenceIt) {
  Start();
  const std::string get = "GET /livez HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& begin :
       {std::string(), get.substr(0, 10), get + "Content-Length: 100\r\n\r\nbody"}) {
    SCOPED_TRACE(begin);
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 64; ++i) {
      idle.push_back(std::make_unique<RawClient>(server_->health_port()));
      if (!begin.empty()) idle.back()->Send(begin);
    }
    const Clock::TimePoint began = clock_.Now();
    RawClient probe(server_->health_port());
    probe.Send(get + "\r\n");
    EXPECT_THAT(probe.ReadUntil("live\n"), HasSubstr("live\n"));
    EXPECT_LT(clock_.Now() - began, std::chrono::seconds(1));
  }
}

TEST_F(HttpServerTest, HostileBodies_AreRefused) {
  Start();
  const auto status = [&](const std::string& body) {
    return StatusOf(PostText("/v1/chat/completions", body));
  };
  EXPECT_EQ(status(""), 400);
  EXPECT_EQ(status(std::string(90000, '[')), 400);
  EXPECT_EQ(status(Repeat("{\"a\":", 10000)), 400);
  EXPECT_EQ(status("{\"messages\": [{\"role\": \"user\", \"content\": \"\xFF\xFE\"}]}"), 400);
  EXPECT_EQ(status("{\"messages\": \xC3"), 400);
  EXPECT_EQ(status(std::string("{\"a\0b\": 1}", 10)), 400);
  EXPECT_EQ(status(R"({"messages": [{"role": "user", "content": "x"}], "n": 1e400})"), 400);
  EXPECT_EQ(status(R"({"messages": [{"role": "user", "content": "x"}], "n": 9223372036854775808})"),
            400);
  EXPECT_EQ(status(R"({"messages": [{"role": "user", "content": "x"}], "max_tokens": -5})"), 400);
  EXPECT_EQ(status(std::string(100001, ' ')), 413);
  // Short of what was announced, then closed.
  RawClient client(server_->port());
  client.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 100\r\n\r\n{\"prompt\"");
  client.Close();
  // A body where none belongs is no second request.
  const std::string two =
      Ask("GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 44\r\n\r\n"
          "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
          "weft_ready");
  EXPECT_THAT(two, Not(HasSubstr("weft_ready")));
  ExpectUp();
}

TEST_F(HttpServerTest, SlowClients_AreGivenUp) {
  options_.head_timeout_seconds = 0.3;
  options_.body_timeout_seconds = 0.3;
  options_.idle_timeout_seconds = 0.3;
  Start();
  RawClient silent(server_->port());
  RawClient head(server_->port());
  RawClient body(server_->port());
  head.Send("GET /livez HTTP/1.1\r\nHost:");
  body.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 99999\r\n\r\n");
  // Something now and then does not help.
  std::thread dripping([&] {
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    while (head.Send("a") && body.Send(" ")) {
      never.WaitUntil(mutex, clock_.Now() + std::chrono::milliseconds(5));
    }
  });
  EXPECT_TRUE(silent.ReadToEnd());
  EXPECT_EQ(silent.all(), "");
  EXPECT_THAT(body.ReadUntil("slowly"), HasSubstr("408"));
  EXPECT_TRUE(body.ReadToEnd());
  dripping.join();
  ExpectUp();
}

TEST_F(HttpServerTest, ClientsThatDoNotRead_AreGivenUp) {
  options_.write_timeout_seconds = 0.3;
  Start();
  engine_.SetPlay(nullptr);
  RawClient client(server_->port());
  client.Send(PostText("/v1/completions", R"({"prompt": "a", "stream": true})"));
  ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == 1; }));
  const std::string text(1 << 20, 'x');
  EXPECT_TRUE(engine_.Await([&] {
    if (engine_.cancelled() == 0) engine_.stream(0).Push({text, {}});
    return engine_.cancelled() == 1;
  }));
}

TEST_F(HttpServerTest, TheEnd_CutsWhatIsUnderWay) {
  Start();
  engine_.SetPlay(nullptr);
  RawClient idle(server_->port());
  RawClient waiting(server_->port());
  waiting.Send(PostText("/v1/completions", R"({"prompt": "a"})"));
  ASSERT_TRUE(engine_.Await([&] { return engine_.submitted() == 1; }));
  std::thread engine([&] {
    EXPECT_TRUE(engine_.Await([&] { return engine_.cancelled() == 1; }));
    engine_.stream(0).Finish(absl::CancelledError("the client left"), {});
  });
  server_.reset();
  engine.join();
  EXPECT_TRUE(idle.ReadToEnd());
  EXPECT_TRUE(waiting.ReadToEnd());
}

TEST_F(HttpServerTest, APortInUse_IsSaid) {
  Start();
  options_.port = server_->port();
  HttpServer::Parts parts;
  parts.engine = &engine_;
  parts.tokenizer = tokenizer_.get();
  EXPECT_THAT(
      HttpServer::Start(options_, parts, clock_, logger_),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(absl::StrCat("port ", options_.port)), HasSubstr("in use"))));
  options_.host = "no-such-host.invalid";
  options_.no_api_key = true;
  EXPECT_THAT(HttpServer::Start(options_, parts, clock_, logger_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no-such-host.invalid")));
}

TEST_F(HttpServerTest, HealthPort_ServesNothingElse) {
  options_.api_keys = {"secret"};
  Start();
  const auto ask = [&](const std::string& request) {
    RawClient client(server_->health_port());
    client.Send(request + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ReadUntil("\r\n\r\n");
    return client.status();
  };
  EXPECT_EQ(ask("GET /livez"), 200);
  EXPECT_EQ(ask("GET /readyz"), 200);
  EXPECT_EQ(ask("GET /healthz"), 200);
  EXPECT_EQ(ask("GET /metrics"), 200);
  EXPECT_EQ(ask("GET /v1/models"), 404);
  EXPECT_EQ(ask("POST /v1/completions"), 405);
  EXPECT_EQ(StatusOf("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), 401);
}

}  // namespace
}  // namespace weft
