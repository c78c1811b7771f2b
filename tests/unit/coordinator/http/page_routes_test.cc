// The page and the data that it shows, as routes.
#include "coordinator/http/page/page_routes.h"

#include <string>
#include <utility>

#include "coordinator/http/page/page_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/coordinator/http/fake_engine.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class FakeFleet final : public FleetView {
 public:
  Json Plan() const override { return plan; }
  Json plan;
};

class PageRoutesTest : public testing::Test {
 protected:
  PageRoutesTest() : tokenizer_(DemoTokenizer()), ids_(1) {}

  Dispatcher Make(const FleetView* fleet) {
    ServedModel model;
    model.name = "demo";
    model.engine = &engine_;
    model.tokenizer = tokenizer_.get();
    model.fleet = fleet;
    model.clock = &clock_;
    model.ids = &ids_;
    DispatcherOptions options;
    options.api_keys = {"one"};
    options.extra = PageRoutes();
    return Dispatcher(std::move(model), std::move(options), logger_);
  }

  static HttpRequest Get(const std::string& path) {
    HttpRequest head;
    head.method = "GET";
    head.path = path;
    head.host = "localhost:8080";
    return head;
  }
  static std::string Header(const HttpReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }

  FakeEngine engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SystemClock clock_;
  IdSource ids_;
  Logger logger_{"test", LogLevel::kError};
  PatientClient client_;
};

TEST_F(PageRoutesTest, ThePage_IsForEverybodyAndLoadsNothingFromElsewhere) {
  Dispatcher dispatcher = Make(nullptr);
  const std::pair<const char*, const char*> files[] = {
      {"/", "text/html; charset=utf-8"},
      {"/page.css", "text/css; charset=utf-8"},
      {"/page.js", "text/javascript; charset=utf-8"},
      {"/page.svg", "image/svg+xml"}};
  for (const auto& [path, type] : files) {
    ASSERT_FALSE(dispatcher.Refuse(Get(path), 0).has_value()) << path;
    const HttpReply reply = dispatcher.Handle(Get(path), client_);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(reply.content_type, type);
    EXPECT_GT(reply.body.size(), 100U) << path;
    const std::string policy = Header(reply, "Content-Security-Policy");
    EXPECT_THAT(policy, StartsWith("default-src 'self';"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(Header(reply, "X-Content-Type-Options"), "nosniff");
  }
  // Pages of others, and names that others chose, get not even this one.
  HttpRequest other = Get("/");
  other.origin = "http://evil.example.com";
  EXPECT_EQ(dispatcher.Refuse(other, 0)->status, 403);
  other = Get("/");
  other.method = "POST";
  EXPECT_EQ(dispatcher.Refuse(other, 0)->status, 405);
}

TEST_F(PageRoutesTest, TheFiles_NeedNoExceptionFromThePolicy) {
  const std::string html(PageHtml());
  EXPECT_THAT(html, StartsWith("<!doctype html>"));
  for (const char* inline_code :
       {"<style", "style=", "onclick", "javascript:", "http:", "https:"}) {
    EXPECT_THAT(html, Not(HasSubstr(inline_code)));
  }
  const std::string script(PageScript());
  EXPECT_THAT(script, StartsWith("(() => {"));
  // Texts of models and workers never become markup or code.
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                          "setAttribute('style", "localStorage", "https:"}) {
    EXPECT_THAT(script, Not(HasSubstr(way)));
  }
  const std::string style(PageStyle());
  for (const char* way : {"@import", "url("}) EXPECT_THAT(style, Not(HasSubstr(way)));
}

TEST_F(PageRoutesTest, TheFleet_NeedsAKeyAndShowsPlanAndCounters) {
  FakeFleet fleet;
  fleet.plan = {{"split", "layers in the shares of --tensor-split"}};
  Dispatcher dispatcher = Make(&fleet);
  HttpRequest request = Get("/v1/fleet");
  EXPECT_EQ(dispatcher.Refuse(request, 0)->status, 401);
  request.authorization = "Bearer one";
  ASSERT_FALSE(dispatcher.Refuse(request, 0).has_value());
  ServingState state;
  state.ready = true;
  state.active = 2;
  state.slots = 16;
  state.pages = 10;
  state.pages_used = 4;
  state.counters.generated_tokens = 1234567890123;
  state.counters.sessions_lost = 1;
  state.processes.push_back({"w0", 5, 0.25, 0.5, 1.0, 4096});
  engine_.SetState(state);
  const HttpReply reply = dispatcher.Handle(request, client_);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(Header(reply, "Cache-Control"), "no-store");
  const Json json = Json::parse(reply.body, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["model"], "demo");
  EXPECT_EQ(json["ready"], true);
  EXPECT_EQ(json["active"], 2);
  EXPECT_EQ(json["pages"]["used"], 4);
  EXPECT_EQ(json["counters"]["generated_tokens"], 1234567890123);
  EXPECT_EQ(json["counters"]["sessions_lost"], 1);
  ASSERT_EQ(json["processes"].size(), 1U);
  EXPECT_EQ(json["processes"][0]["name"], "w0");
  EXPECT_EQ(json["processes"][0]["round_trip_seconds"], 1.0);
  EXPECT_EQ(json["plan"], fleet.plan);

  // While there is no session, or nobody knows.
  state.ready = false;
  state.trouble = "worker w1 was lost";
  engine_.SetState(state);
  fleet.plan = Json();
  const Json lost = Json::parse(dispatcher.Handle(request, client_).body, nullptr, false);
  EXPECT_EQ(lost["ready"], false);
  EXPECT_THAT(lost["trouble"].get<std::string>(), HasSubstr("worker w1 was lost"));
  EXPECT_TRUE(lost["plan"].is_null());
  Dispatcher alone = Make(nullptr);
  const Json none = Json::parse(alone.Handle(request, client_).body, nullptr, false);
  EXPECT_TRUE(none["plan"].is_null());
}

}  // namespace
}  // namespace weft
