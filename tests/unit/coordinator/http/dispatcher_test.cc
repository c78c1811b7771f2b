// Routes, keys, origins, health and metrics.
#include "coordinator/http/dispatcher.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/coordinator/http/fake_engine.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() : tokenizer_(DemoTokenizer()), format_(*tokenizer_), ids_(1) {
    engine_.SetPlay(Says({"x"}));
  }

  Dispatcher Make(DispatcherOptions options) {
    ServedModel model;
    model.name = "demo";
    model.engine = &engine_;
    model.tokenizer = tokenizer_.get();
    model.chat = &format_;
    model.clock = &clock_;
    model.ids = &ids_;
    return Dispatcher(std::move(model), std::move(options), logger_);
  }

  static HttpRequest Head(const std::string& method, const std::string& path) {
    HttpRequest head;
    head.method = method;
    head.path = path;
    head.id = "req-1";
    head.address = "10.0.0.1";
    head.host = "localhost:8080";
    if (method == "POST") head.content_type = "application/json; charset=utf-8";
    return head;
  }
  // The status with which a head is refused; 0: it is not.
  static int Refused(Dispatcher& dispatcher, const HttpRequest& head, int64_t bytes = 10) {
    const std::optional<HttpReply> reply = dispatcher.Refuse(head, bytes);
    return reply ? reply->status : 0;
  }
  static std::string Header(const HttpReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }

  FakeEngine engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  FakeFormat format_;
  SystemClock clock_;
  IdSource ids_;
  Logger logger_{"test", LogLevel::kError};
  PatientClient client_;
};

TEST_F(DispatcherTest, Heads_AreRefusedByPathMethodTypeAndSize) {
  Dispatcher dispatcher = Make({});
  EXPECT_EQ(Refused(dispatcher, Head("POST", "/v1/chat/completions")), 0);
  EXPECT_EQ(Refused(dispatcher, Head("GET", "/v1/models")), 0);
  EXPECT_EQ(Refused(dispatcher, Head("HEAD", "/livez")), 0);
  EXPECT_EQ(Refused(dispatcher, Head("GET", "/v1/models/demo")), 0);
  EXPECT_EQ(Refused(dispatcher, Head("GET", "/nothing")), 404);
  EXPECT_EQ(Refused(dispatcher, Head("GET", "/v1/chat/completions")), 405);
  EXPECT_EQ(Refused(dispatcher, Head("DELETE", "/v1/models/demo")), 405);
  EXPECT_EQ(Refused(dispatcher, Head("POST", "/v1/completions"), (int64_t{8} << 20) + 1), 413);
  HttpRequest head = Head("POST", "/tokenize");
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                           "multipart/form-data; boundary=x", "application/jsonx"}) {
    head.content_type = type;
    EXPECT_EQ(Refused(dispatcher, head), 415) << type;
  }
  const std::optional<HttpReply> reply = dispatcher.Refuse(Head("GET", "/v1/chat/completions"), 0);
  EXPECT_EQ(Header(*reply, "Allow"), "POST");
  EXPECT_EQ(Header(*reply, "X-Request-Id"), "req-1");
  EXPECT_THAT(reply->body, HasSubstr("method_not_allowed"));
}

TEST_F(DispatcherTest, Keys_AreWantedWhereWorkIsDone) {
  DispatcherOptions options;
  options.api_keys = {"one", "two"};
  options.extra.push_back({"/", "text/html", false, [] { return std::string("<html>"); }});
  Dispatcher dispatcher = Make(std::move(options));
  HttpRequest head = Head("POST", "/v1/completions");
  EXPECT_EQ(Refused(dispatcher, head), 401);
  for (const char* wrong : {"Bearer", "Bearer ", "Bearer three", "Bearer on", "Bearer onee",
                            "Basic one", "one", "Bearer one two"}) {
    head.authorization = wrong;
    EXPECT_EQ(Refused(dispatcher, head), 401) << wrong;
  }
  for (const char* right : {"Bearer one", "bearer two", "Bearer  two "}) {
    head.authorization = right;
    EXPECT_EQ(Refused(dispatcher, head), 0) << right;
  }
  for (const char* path : {"/livez", "/readyz", "/"}) {
    EXPECT_EQ(Refused(dispatcher, Head("GET", path)), 0) << path;
  }
  for (const char* path : {"/metrics", "/healthz", "/v1/models"}) {
    EXPECT_EQ(Refused(dispatcher, Head("GET", path)), 401) << path;
  }
  EXPECT_EQ(dispatcher.Handle(Head("GET", "/"), client_).body, "<html>");
  // Each key is a client of its own.
  head.authorization = "Bearer two";
  head.body = R"({"prompt": "a"})";
  EXPECT_EQ(dispatcher.Handle(head, client_).status, 200);
  EXPECT_EQ(engine_.request(0).client, "key 1");
}

TEST_F(DispatcherTest, Origins_OthersPagesAreRefused) {
  DispatcherOptions options;
  options.origins.hosts = {"localhost", "[::1]"};
  Dispatcher dispatcher = Make(options);
  HttpRequest head = Head("POST", "/v1/completions");
  head.origin = "http://localhost:8080";
  EXPECT_EQ(Refused(dispatcher, head), 0);
  for (const char* origin : {"http://evil.example.com", "null", "http://localhost:8081",
                             "http://localhost:8080.evil.example.com"}) {
    head.origin = origin;
    EXPECT_EQ(Refused(dispatcher, head), 403) << origin;
  }
  head.origin.clear();
  for (const char* host :
       {"evil.example.com", "evil.example.com:8080", "localhost.evil.example.com"}) {
    head.host = host;
    EXPECT_EQ(Refused(dispatcher, head), 403) << host;
  }
  head.host = "[::1]:8080";
  EXPECT_EQ(Refused(dispatcher, head), 0);

  options.origins.origins = {"https://chat.example.com"};
  Dispatcher open = Make(options);
  head.origin = "https://chat.example.com";
  EXPECT_EQ(Refused(open, head), 0);
  HttpRequest preflight = Head("OPTIONS", "/v1/completions");
  EXPECT_EQ(Header(*open.Refuse(preflight, 0), "Access-Control-Allow-Origin"), "");
  preflight.origin = "https://chat.example.com";
  const std::optional<HttpReply> reply = open.Refuse(preflight, 0);
  EXPECT_EQ(reply->status, 204);
  EXPECT_EQ(Header(*reply, "Access-Control-Allow-Origin"), "https://chat.example.com");
  EXPECT_EQ(Header(*reply, "Access-Control-Allow-Methods"), "POST");
}

TEST_F(DispatcherTest, NotReadyOrDraining_RefusesWorkOnly) {
  Dispatcher dispatcher = Make({});
  ServingState state;
  state.trouble = "worker w1 was lost";
  engine_.SetState(state);
  std::optional<HttpReply> reply = dispatcher.Refuse(Head("POST", "/v1/completions"), 10);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, 503);
  EXPECT_THAT(reply->body, HasSubstr("worker w1 was lost"));
  EXPECT_NE(Header(*reply, "Retry-After"), "");
  EXPECT_EQ(Refused(dispatcher, Head("POST", "/tokenize")), 0);
  EXPECT_EQ(dispatcher.Handle(Head("GET", "/readyz"), client_).status, 503);
  EXPECT_EQ(dispatcher.Handle(Head("GET", "/livez"), client_).status, 200);
  state.ready = true;
  engine_.SetState(state);
  EXPECT_EQ(dispatcher.Handle(Head("GET", "/readyz"), client_).status, 200);
  EXPECT_EQ(Refused(dispatcher, Head("POST", "/v1/completions")), 0);
  dispatcher.Drain();
  EXPECT_EQ(Refused(dispatcher, Head("POST", "/v1/completions")), 503);
  EXPECT_EQ(dispatcher.Handle(Head("GET", "/readyz"), client_).status, 503);
}

TEST(Health, WorkThatWaits_MustProgress) {
  const Clock::TimePoint start{};
  ServingState state;
  state.ready = true;
  state.last_progress = start;
  const Clock::TimePoint later = start + std::chrono::seconds(60);
  const HealthOptions options;
  EXPECT_TRUE(HealthOf(state, false, options, later).good());  // nobody waits
  state.waiting = 1;
  Health health = HealthOf(state, false, options, later);
  EXPECT_TRUE(health.ready);
  EXPECT_FALSE(health.progressing);
  EXPECT_EQ(health.stalled_seconds, 60);
  EXPECT_THAT(health.trouble, HasSubstr("60 s"));
  EXPECT_EQ(ReadyReply(health).status, 503);
  EXPECT_EQ(HealthReply(health, state).status, 503);
  EXPECT_EQ(LiveReply().status, 200);
  state.waiting = 0;
  state.active = 3;
  EXPECT_FALSE(HealthOf(state, false, options, later).progressing);
  state.last_progress = later - std::chrono::seconds(1);
  EXPECT_TRUE(HealthOf(state, false, options, later).good());
  EXPECT_FALSE(HealthOf(state, true, options, later).ready);
}

TEST_F(DispatcherTest, Metrics_AreOfTheStateAndTheRequests) {
  Dispatcher dispatcher = Make({});
  ServingState state;
  state.ready = true;
  state.waiting = 3;
  state.pages = 10;
  state.pages_used = 4;
  state.pages_kept = 1;
  state.counters.generated_tokens = 1234567890123;
  state.counters.first_token.Add(0.002);
  state.counters.first_token.Add(7);
  state.counters.first_token.Add(100);
  engine_.SetState(state);
  Refused(dispatcher, Head("GET", "/a"));
  Refused(dispatcher, Head("GET", "/b"));
  const std::string text = dispatcher.Handle(Head("GET", "/metrics"), client_).body;
  for (const char* line :
       {"weft_ready 1\n", "weft_requests{state=\"waiting\"} 3\n",
        "weft_kv_pages{state=\"free\"} 5\n", "weft_generated_tokens_total 1234567890123\n",
        "weft_time_to_first_token_seconds_bucket{le=\"0.0025\"} 1\n",
        "weft_time_to_first_token_seconds_bucket{le=\"10\"} 2\n",
        "weft_time_to_first_token_seconds_bucket{le=\"+Inf\"} 3\n",
        "weft_time_to_first_token_seconds_count 3\n",
        "weft_http_requests_total{route=\"other\",code=\"404\"} 2\n",
        "# TYPE weft_time_to_first_token_seconds histogram\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // Paths of clients make no rows.
  EXPECT_THAT(text, Not(HasSubstr("\"/a\"")));
}

TEST(ApiKeys, Files_HaveOneKeyALine) {
  TemporaryFolder folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder.File("keys")) << text;
    return ReadApiKeys(folder.File("keys"));
  };
  EXPECT_THAT(*write("# mine\n one \n\ntwo\n"), ElementsAre("one", "two"));
  EXPECT_THAT(write("\n"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no key")));
  EXPECT_THAT(write("ok\na secret\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("line 2"), Not(HasSubstr("secret")))));
  EXPECT_THAT(ReadApiKeys(folder.File("none")), StatusIs(absl::StatusCode::kNotFound));
  // Neither of them has an end.
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.File("pipe"), std::string("/dev/zero")}) {
    EXPECT_THAT(ReadApiKeys(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
}

}  // namespace
}  // namespace weft
