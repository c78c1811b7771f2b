#include "common/collectives/schedule_runner.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/collectives/wire_format.h"

namespace weft {
namespace {

class RoundRunner {
 public:
  RoundRunner(DType wire, absl::Span<float> values, RankLink& link, const CollectiveCall& call,
              RunnerScratch& scratch)
      : wire_(wire),
        lossy_(IsLossyWire(wire)),
        values_(values),
        link_(link),
        call_(call),
        scratch_(scratch) {}

  absl::Status Run(const Round& round) {
    encoded_range_ = {};
    if (lossy_) {
      for (const ElementRange& range : round.rounded) {
        RETURN_IF_ERROR(Encode(range));
        DecodeWire(wire_, Encoded(range), Values(range));
      }
    }
    for (const Exchange& exchange : round.exchanges) {
      if (!exchange.send.empty()) RETURN_IF_ERROR(Send(exchange));
    }
    const auto terms =
        static_cast<size_t>(round.sum.terms) * static_cast<size_t>(round.sum.range.size());
    if (scratch_.terms.size() < terms) scratch_.terms.resize(terms);
    for (const Exchange& exchange : round.exchanges) {
      if (!exchange.receive.empty()) RETURN_IF_ERROR(Receive(exchange));
    }
    if (round.sum.terms > 0) AddUp(round.sum);
    return absl::OkStatus();
  }

 private:
  absl::Span<float> Values(const ElementRange& range) const {
    return values_.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
  }
  absl::Span<const uint8_t> Encoded(const ElementRange& range) const {
    return absl::MakeConstSpan(scratch_.encoded)
        .subspan(0, static_cast<size_t>(WireBytes(wire_, range.size())));
  }

  // What several ranks get, and what was rounded, is encoded once.
  absl::Status Encode(const ElementRange& range) {
    if (range == encoded_range_) return absl::OkStatus();
    const auto bytes = static_cast<size_t>(WireBytes(wire_, range.size()));
    if (scratch_.encoded.size() < bytes) scratch_.encoded.resize(bytes);
    RETURN_IF_ERROR(
        EncodeWire(wire_, Values(range), absl::MakeSpan(scratch_.encoded).subspan(0, bytes)));
    encoded_range_ = range;
    return absl::OkStatus();
  }

  absl::Status Send(const Exchange& exchange) {
    absl::Span<const uint8_t> bytes;
    if (lossy_) {
      RETURN_IF_ERROR(Encode(exchange.send));
      bytes = Encoded(exchange.send);
    } else {
      const absl::Span<const float> own = Values(exchange.send);
      bytes = {reinterpret_cast<const uint8_t*>(own.data()), own.size() * sizeof(float)};
    }
    return link_.Send(call_, exchange.peer, exchange.send_number, bytes);
  }

  absl::Span<float> Term(size_t term, int64_t elements) const {
    const auto size = static_cast<size_t>(elements);
    return absl::MakeSpan(scratch_.terms).subspan(term * size, size);
  }

  void AddUp(const TermSum& sum) {
    const int64_t elements = sum.range.size();
    const absl::Span<float> own = Values(sum.range);
    std::copy(own.begin(), own.end(), Term(static_cast<size_t>(sum.own), elements).begin());
    AddAsDoubling(static_cast<size_t>(sum.terms), [&](size_t to, size_t from) {
      float* const target = Term(to, elements).data();
      const float* const other = Term(from, elements).data();
      for (int64_t i = 0; i < elements; ++i) target[i] += other[i];
    });
    const absl::Span<float> total = Term(0, elements);
    std::copy(total.begin(), total.end(), own.begin());
  }

  absl::Status Receive(const Exchange& exchange) {
    const absl::Span<float> target =
        exchange.combine == Combine::kTerm
            ? Term(static_cast<size_t>(exchange.term), exchange.receive.size())
            : Values(exchange.receive);
    return link_.Receive(call_, exchange.peer, exchange.receive_number,
                         WireBytes(wire_, exchange.receive.size()),
                         [&](absl::Span<const uint8_t> bytes) {
                           if (exchange.combine == Combine::kAdd) {
                             AddWire(wire_, bytes, target);
                           } else {
                             DecodeWire(wire_, bytes, target);
                           }
                         });
  }

  const DType wire_;
  const bool lossy_;
  const absl::Span<float> values_;
  RankLink& link_;
  const CollectiveCall& call_;
  RunnerScratch& scratch_;
  ElementRange encoded_range_;  // what scratch_.encoded holds, of this round
};

}  // namespace

int32_t CollectiveMessageId(int32_t collective, int32_t number, int32_t from, int32_t to) {
  static_assert(int64_t{kMaxCollectiveIds} * kMessagesBetweenRanks * kMaxCommunicatorRanks *
                    kMaxCommunicatorRanks ==
                int64_t{1} << 31);
  const int32_t pair = from * kMaxCommunicatorRanks + to;
  return (collective * kMessagesBetweenRanks + number) * kMaxCommunicatorRanks *
             kMaxCommunicatorRanks +
         pair;
}

absl::Status RunRounds(absl::Span<const Round> rounds, DType wire, absl::Span<float> values,
                       RankLink& link, const CollectiveCall& call, RunnerScratch& scratch) {
  RoundRunner runner(wire, values, link, call, scratch);
  for (const Round& round : rounds) RETURN_IF_ERROR(runner.Run(round));
  return absl::OkStatus();
}

}  // namespace weft
