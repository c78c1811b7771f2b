#include "common/http/probe_server.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

class ProbeServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ProbeServer::Pages pages;
    pages["/livez"] = [] { return TextReply(200, "live"); };
    pages["/readyz"] = [this] {
      return ready_ ? TextReply(200, "ready") : TextReply(503, "not ready: it drains");
    };
    ASSERT_OK_AND_ASSIGN(server_, ProbeServer::Start("127.0.0.1", 0, std::move(pages), clock_));
    client_ = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
  }

  const SystemClock clock_;
  std::atomic<bool> ready_ = true;
  std::unique_ptr<ProbeServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(ProbeServerTest, PagesAreAskedEachTime) {
  auto reply = client_->Get("/readyz");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "ready\n");
  ready_ = false;
  reply = client_->Get("/readyz");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 503);
  EXPECT_EQ(reply->body, "not ready: it drains\n");
  ASSERT_TRUE(client_->Head("/livez"));
}

TEST_F(ProbeServerTest, NothingElseIsServed) {
  const auto other = client_->Get("/metrics/../secret");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 404);
  const auto post = client_->Post("/livez", "body", "text/plain");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET");
}

TEST_F(ProbeServerTest, IdleConnectionsDoNotSilenceIt) {
  std::vector<int> idle;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 64; ++i) {
    idle.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(idle.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
  }
  const Clock::TimePoint began = clock_.Now();
  EXPECT_TRUE(client_->Get("/livez"));
  EXPECT_LT(clock_.Now() - began, std::chrono::seconds(1));
  for (const int socket : idle) ::close(socket);
}

TEST_F(ProbeServerTest, APortThatIsTakenIsNamed) {
  const auto second = ProbeServer::Start("127.0.0.1", server_->port(), {}, clock_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(std::to_string(server_->port())),
            absl::string_view::npos);
}

}  // namespace
}  // namespace weft
