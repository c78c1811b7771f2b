#include "common/http/metrics_access.h"

#include <httplib.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/http/probe_server.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsAccessTest : public testing::Test {
 protected:
  void Write(const std::string& text) {
    // As the writers of secrets do: another file takes the place.
    std::ofstream(Path() + ".new") << text;
    std::filesystem::rename(Path() + ".new", Path());
  }
  std::string Path() const { return folder_.path() + "/token"; }

  static int Status(MetricsAccess& access, const std::string& authorization) {
    HttpRequest request;
    request.authorization = authorization;
    const std::optional<HttpReply> refusal = access.Refuse(request);
    return refusal.has_value() ? refusal->status : 200;
  }

  const TemporaryFolder folder_;
};

TEST_F(MetricsAccessTest, Token_WantedAndReadAgain) {
  Write("first-token\n");
  ASSERT_OK_AND_ASSIGN(const auto access, MetricsAccess::Create(Path(), /*open=*/true));
  EXPECT_EQ(Status(*access, "Bearer first-token"), 200);
  EXPECT_EQ(Status(*access, "bearer  first-token "), 200);
  for (const char* wrong : {"", "first-token", "Basic first-token", "Bearer ", "Bearer first-toke",
                            "Bearer first-token2", "Bearer second"}) {
    EXPECT_EQ(Status(*access, wrong), 401) << wrong;
  }
  Write("second");
  EXPECT_EQ(Status(*access, "Bearer second"), 200);
  EXPECT_EQ(Status(*access, "Bearer first-token"), 401);
  // What cannot be read or is none leaves the token that was.
  Write("two words");
  EXPECT_EQ(Status(*access, "Bearer second"), 200);
  std::filesystem::remove(Path());
  EXPECT_EQ(Status(*access, "Bearer second"), 200);
  EXPECT_EQ(Status(*access, "Bearer "), 401);
}

// Neither waited for nor read to an end that never comes; and said once, however many ask.
TEST_F(MetricsAccessTest, PipesAndDevices_LeaveTheTokenThatWas) {
  Logger logger("access", LogLevel::kInfo);
  for (const bool pipe : {true, false}) {
    const auto put = [&] {
      std::filesystem::remove(Path());
      if (pipe) {
        ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
      } else {
        std::filesystem::create_symlink("/dev/zero", Path());
      }
    };
    Write("token");
    ASSERT_OK_AND_ASSIGN(const auto access, MetricsAccess::Create(Path(), true, &logger));
    put();
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Status(*access, "Bearer token"), 200);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(Path() + ": is not a regular file"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_THAT(MetricsAccess::Create(Path(), true),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(Path())));
    Write("another");
    EXPECT_EQ(Status(*access, "Bearer another"), 200);
  }
}

TEST_F(MetricsAccessTest, NoToken_OpenOnlyWhereAskedFor) {
  ASSERT_OK_AND_ASSIGN(const auto open, MetricsAccess::Create("", true));
  EXPECT_EQ(Status(*open, ""), 200);
  ASSERT_OK_AND_ASSIGN(const auto closed, MetricsAccess::Create("", false));
  EXPECT_EQ(Status(*closed, "Bearer x"), 403);
  EXPECT_THAT(closed->Refuse({})->body, HasSubstr("--metrics-token-file"));
}

TEST_F(MetricsAccessTest, BadFiles_NamedNotShown) {
  EXPECT_THAT(MetricsAccess::Create(Path(), true),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path())));
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("sec ret"), std::string(1025, 's')}) {
    Write(text);
    const absl::Status status = MetricsAccess::Create(Path(), true).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(Path())));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("sec ret")));
  }
}

TEST_F(MetricsAccessTest, Guard_LeavesOtherPagesOpen) {
  const SystemClock clock;
  ASSERT_OK_AND_ASSIGN(const auto access, MetricsAccess::Create("", false));
  ProbeServer::Pages pages;
  for (const char* path : {"/livez", "/metrics"}) {
    pages[path] = [] { return TextReply(200, "page"); };
  }
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ProbeServer::Start("127.0.0.1", 0, std::move(pages), clock, [&](const HttpRequest& request) {
        return request.path == "/metrics" ? access->Refuse(request) : std::nullopt;
      }));
  httplib::Client client("127.0.0.1", server->port());
  EXPECT_EQ(client.Get("/livez")->status, 200);
  EXPECT_EQ(client.Get("/metrics")->status, 403);
  EXPECT_EQ(client.Head("/metrics")->status, 403);
}

}  // namespace
}  // namespace weft
