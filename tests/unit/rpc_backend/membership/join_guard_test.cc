#include "rpc_backend/membership/join_guard.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/membership.pb.h"
#include "tests/support/hand_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "a token that nobody else has";
constexpr char kTokenText[] = "a-token-that-nobody-else-has";

JoinClaim SampleClaim() {
  return {.name = "beta",
          .address = "10.0.0.2:7000",
          .incarnation = "0123456789abcdef",
          .host_identity = "machine",
          .leaving = false};
}

class JoinGuardTest : public ::testing::Test {
 protected:
  std::unique_ptr<JoinGuard> NewGuard() {
    folder_.Write("token", kTokenText);
    auto token = JoinToken::Open(folder_.File("token"));
    EXPECT_THAT(token, IsOk());
    auto guard = JoinGuard::Create(*std::move(token), clock_);
    EXPECT_THAT(guard, IsOk());
    return *std::move(guard);
  }
  static JoinAttempt NewAttempt(JoinGuard& guard) {
    JoinAttempt attempt;
    attempt.claim = SampleClaim();
    attempt.nonce = *NewPeerNonce();
    attempt.challenge = *guard.Challenge();
    return attempt;
  }
  static std::string Proof(const JoinAttempt& attempt, std::string_view token = kTokenText) {
    return std::string(ViewOf(*ProveJoin(JoinToken::KeyOf(token), PeerSide::kConnector, attempt)));
  }

  const TemporaryFolder folder_;
  HandClock clock_;
};

TEST_F(JoinGuardTest, RightProof_IsAnsweredWithTheCoordinators) {
  const auto guard = NewGuard();
  const JoinAttempt attempt = NewAttempt(*guard);
  ASSERT_OK_AND_ASSIGN(const PeerMac proof, guard->Check(attempt, Proof(attempt)));
  const SessionKey key = JoinToken::KeyOf(kTokenText);
  EXPECT_TRUE(IsJoinProof(key, PeerSide::kListener, attempt, ViewOf(proof)));
  EXPECT_FALSE(IsJoinProof(key, PeerSide::kConnector, attempt, ViewOf(proof)));
}

TEST_F(JoinGuardTest, ProofSentAgain_IsRefusedAsReplayed) {
  const auto guard = NewGuard();
  const JoinAttempt attempt = NewAttempt(*guard);
  const std::string proof = Proof(attempt);
  EXPECT_OK(guard->Check(attempt, proof).status());
  EXPECT_THAT(guard->Check(attempt, proof),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("replayed")));
  // Nor later, when nobody remembers it.
  clock_.Move(kChallengeTime + std::chrono::milliseconds(1));
  EXPECT_THAT(guard->Check(attempt, proof),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("replayed")));
  // The same worker with a new challenge is welcome.
  const JoinAttempt next = NewAttempt(*guard);
  EXPECT_OK(guard->Check(next, Proof(next)).status());
}

TEST_F(JoinGuardTest, EverythingSaid_IsProved) {
  const auto guard = NewGuard();
  using Change = std::function<void(JoinAttempt&)>;
  const std::vector<Change> changes = {
      [](JoinAttempt& attempt) { attempt.claim.name = "gamma"; },
      [](JoinAttempt& attempt) { attempt.claim.address = "10.0.0.3:7000"; },
      [](JoinAttempt& attempt) { attempt.claim.incarnation[3] = 'x'; },
      [](JoinAttempt& attempt) { attempt.claim.host_identity = "another"; },
      [](JoinAttempt& attempt) { attempt.claim.leaving = true; },
      [](JoinAttempt& attempt) { attempt.nonce[31] ^= 1; },
      // What belongs to one text does not to the other.
      [](JoinAttempt& attempt) {
        attempt.claim.host_identity = "machin";
        attempt.claim.name = "ebeta";
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    JoinAttempt attempt = NewAttempt(*guard);
    const std::string proof = Proof(attempt);
    changes[i](attempt);
    EXPECT_THAT(guard->Check(attempt, proof),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("another token")))
        << i;
  }
}

TEST_F(JoinGuardTest, WrongProofs_AreRefused_AndDoNotUseTheChallengeUp) {
  const auto guard = NewGuard();
  const JoinAttempt attempt = NewAttempt(*guard);
  const std::string right = Proof(attempt);
  for (const std::string& wrong : {Proof(attempt, kToken), std::string(), std::string(32, '\0'),
                                   right.substr(0, 31), right + "x",
                                   std::string(ViewOf(*ProveJoin(JoinToken::KeyOf(kTokenText),
                                                                 PeerSide::kListener, attempt)))}) {
    EXPECT_THAT(guard->Check(attempt, wrong),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("--join-token-file")));
  }
  EXPECT_OK(guard->Check(attempt, right).status());
}

TEST_F(JoinGuardTest, Challenges_AreOfOneGuard_AndEachIsAnother) {
  const auto guard = NewGuard();
  const auto other = NewGuard();
  EXPECT_NE(*guard->Challenge(), *guard->Challenge());
  const JoinAttempt foreign = NewAttempt(*other);
  EXPECT_THAT(guard->Check(foreign, Proof(foreign)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not of this")));
  // Every bit of it is checked: time, random bytes, code.
  const PeerNonce good = *guard->Challenge();
  for (size_t i = 0; i < good.size(); ++i) {
    JoinAttempt changed = NewAttempt(*guard);
    changed.challenge = good;
    changed.challenge[i] ^= 0x10;
    EXPECT_THAT(guard->Check(changed, Proof(changed)),
                StatusIs(absl::StatusCode::kFailedPrecondition))
        << i;
  }
}

TEST_F(JoinGuardTest, OldChallenge_IsRefused) {
  const auto guard = NewGuard();
  const JoinAttempt attempt = NewAttempt(*guard);
  clock_.Move(kChallengeTime);
  const JoinAttempt fresh = NewAttempt(*guard);
  EXPECT_OK(guard->Check(attempt, Proof(attempt)).status());
  clock_.Move(kChallengeTime + std::chrono::seconds(1));
  EXPECT_THAT(guard->Check(fresh, Proof(fresh)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("11 s old")));
}

TEST_F(JoinGuardTest, Memory_HasAnEnd_AndComesBack) {
  const auto guard = NewGuard();
  for (size_t i = 0; i < kMostProofs; ++i) {
    const JoinAttempt attempt = NewAttempt(*guard);
    ASSERT_OK(guard->Check(attempt, Proof(attempt)).status());
  }
  const JoinAttempt late = NewAttempt(*guard);
  EXPECT_THAT(guard->Check(late, Proof(late)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096")));
  clock_.Move(kChallengeTime + std::chrono::milliseconds(1));
  const JoinAttempt next = NewAttempt(*guard);
  EXPECT_OK(guard->Check(next, Proof(next)).status());
}

TEST_F(JoinGuardTest, Token_IsReadAgain) {
  const auto guard = NewGuard();
  folder_.Write("token", "another-token-of-at-least-20\n");
  const JoinAttempt attempt = NewAttempt(*guard);
  EXPECT_THAT(guard->Check(attempt, Proof(attempt)), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_OK(guard->Check(attempt, Proof(attempt, "another-token-of-at-least-20")).status());
}

TEST_F(JoinGuardTest, Token_ThatIsShortOrMissing_IsRefused) {
  const std::string path = folder_.Write("short", "0123456789012345678\n");
  EXPECT_THAT(JoinToken::Open(path),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("20 to 1024")));
  EXPECT_THAT(JoinToken::Open(folder_.File("none")), StatusIs(absl::StatusCode::kNotFound));
}

TEST(JoinCodecTest, Join_ThereAndBack) {
  JoinAttempt attempt;
  attempt.claim = SampleClaim();
  attempt.claim.leaving = true;
  attempt.nonce = *NewPeerNonce();
  attempt.challenge = *NewPeerNonce();
  PeerMac proof;
  proof.fill(7);
  proto::JoinRequest message;
  EncodeJoin(attempt, proof, message);
  EXPECT_EQ(proto::JoinRequest::descriptor()->field_count(), 8) << "a field without a codec";
  ASSERT_OK_AND_ASSIGN(const DecodedJoin decoded, DecodeJoin(message));
  EXPECT_EQ(decoded.attempt.claim, attempt.claim);
  EXPECT_EQ(decoded.attempt.nonce, attempt.nonce);
  EXPECT_EQ(decoded.attempt.challenge, attempt.challenge);
  EXPECT_EQ(decoded.proof, ViewOf(proof));
  message.set_challenge("short");
  EXPECT_THAT(DecodeJoin(message), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace weft
