// weft-slow-link: joins two network namespaces by a link with a delay and a rate, for tests. The
// kernels of test machines have no netem.
//
// Makes an interface `slow0` (TUN, layer 3) in each namespace, says "ready", and passes packets
// between them until standard input ends: each leaves once those before it have, at the rate, and
// arrives DELAY later. Who starts it gives the interfaces their addresses.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/clock.h"

namespace weft {
namespace {

using LinkTime = Clock::TimePoint;

constexpr char kInterface[] = "slow0";
constexpr size_t kMostPacketBytes = 65536;
// As the buffer of a router: what comes when so much waits is lost.
constexpr size_t kMostWaiting = 4096;

int Fail(const std::string& what) {
  std::fprintf(stderr, "weft-slow-link: %s: %s\n", what.c_str(), std::strerror(errno));
  return 2;
}

// An interface in that namespace; -1 with errno.
int OpenInterface(const std::string& name_space) {
  const int space = open(("/run/netns/" + name_space).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) return -1;
  close(space);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tun < 0) return -1;
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::memcpy(request.ifr_name, kInterface, sizeof(kInterface));
  return ioctl(tun, TUNSETIFF, &request) == 0 ? tun : -1;
}

// Packets on their way from one interface to another.
class Direction {
 public:
  Direction(int from, int to, std::chrono::nanoseconds delay, double nanoseconds_per_byte)
      : from_(from), to_(to), delay_(delay), nanoseconds_per_byte_(nanoseconds_per_byte) {}

  // Takes what was sent.
  void Take() {
    ssize_t bytes = 0;
    while ((bytes = read(from_, buffer_.data(), buffer_.size())) > 0) {
      if (waiting_.size() >= kMostWaiting) continue;
      const auto taken = std::chrono::nanoseconds(
          static_cast<int64_t>(static_cast<double>(bytes) * nanoseconds_per_byte_));
      free_ = std::max(free_, SystemClock().Now()) + taken;
      waiting_.emplace_back(free_ + delay_,
                            std::vector<uint8_t>(buffer_.data(), buffer_.data() + bytes));
    }
  }

  // Hands over what arrives by now; when the next one does.
  LinkTime HandOver() {
    while (!waiting_.empty() && waiting_.front().first <= SystemClock().Now()) {
      const std::vector<uint8_t>& packet = waiting_.front().second;
      // One that the other side has no room for is lost.
      (void)!write(to_, packet.data(), packet.size());
      waiting_.pop_front();
    }
    return waiting_.empty() ? LinkTime::max() : waiting_.front().first;
  }

 private:
  const int from_;
  const int to_;
  const std::chrono::nanoseconds delay_;
  const double nanoseconds_per_byte_;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kMostPacketBytes);
  std::deque<std::pair<LinkTime, std::vector<uint8_t>>> waiting_;
  LinkTime free_{};  // when the link has sent what it was given
};

timespec Until(LinkTime time) {
  const auto left = std::clamp<std::chrono::nanoseconds>(
      time - SystemClock().Now(), std::chrono::nanoseconds(0), std::chrono::seconds(10));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {seconds.count(), (left - seconds).count()};
}

int Run(const std::string& a, const std::string& b, std::chrono::nanoseconds delay,
        double nanoseconds_per_byte) {
  prctl(PR_SET_TIMERSLACK, 1);
  const int one = OpenInterface(a);
  if (one < 0) return Fail("namespace " + a);
  const int other = OpenInterface(b);
  if (other < 0) return Fail("namespace " + b);
  Direction there(one, other, delay, nanoseconds_per_byte);
  Direction back(other, one, delay, nanoseconds_per_byte);
  std::puts("ready");
  std::fflush(stdout);
  std::array<pollfd, 3> polled = {{{one, POLLIN, 0}, {other, POLLIN, 0}, {0, POLLIN, 0}}};
  while (true) {
    there.Take();
    back.Take();
    const timespec wait = Until(std::min(there.HandOver(), back.HandOver()));
    if (ppoll(polled.data(), polled.size(), &wait, nullptr) < 0 && errno != EINTR) {
      return Fail("ppoll");
    }
    if (polled[2].revents != 0) return 0;
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  int64_t delay_us = 0;
  double mbit = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[3], &delay_us) || delay_us < 0 ||
      !absl::SimpleAtod(argv[4], &mbit) || !(mbit > 0)) {
    std::fputs("usage: weft-slow-link NAMESPACE_A NAMESPACE_B DELAY_US MBIT_PER_S\n", stderr);
    return 2;
  }
  return weft::Run(argv[1], argv[2], std::chrono::microseconds(delay_us), 8000.0 / mbit);
}
