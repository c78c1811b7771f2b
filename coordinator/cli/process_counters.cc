#include "coordinator/cli/process_counters.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

// What lies between two readings, for each process that made a step.
std::vector<ProcessCounters> Between(const std::vector<ProcessCounters>& before,
                                     const std::vector<ProcessCounters>& after) {
  std::vector<ProcessCounters> between;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    ProcessCounters d = after[i];
    const ProcessCounters& b = before[i];
    d.steps -= b.steps;
    d.hand_offs -= b.hand_offs;
    d.hand_off_bytes -= b.hand_off_bytes;
    d.compute_seconds -= b.compute_seconds;
    d.wait_seconds -= b.wait_seconds;
    d.wire_seconds -= b.wire_seconds;
    d.hand_off_seconds -= b.hand_off_seconds;
    d.program_sends -= b.program_sends;
    d.requests -= b.requests;
    d.request_bytes -= b.request_bytes;
    d.replies -= b.replies;
    d.reply_bytes -= b.reply_bytes;
    d.round_trip_seconds -= b.round_trip_seconds;
    if (d.steps > 0) between.push_back(std::move(d));
  }
  return between;
}

double PerStep(int64_t count, const ProcessCounters& of) {
  return static_cast<double>(count) / static_cast<double>(of.steps);
}

double MicrosPerStep(double seconds, const ProcessCounters& of) {
  return seconds * 1e6 / static_cast<double>(of.steps);
}

// What a step took beyond the worker's own work and waiting: the way there and back.
double TransitSeconds(const ProcessCounters& of) {
  return std::max(0.0, of.round_trip_seconds - of.compute_seconds - of.wait_seconds -
                           of.wire_seconds - of.hand_off_seconds);
}

nlohmann::ordered_json PartsJson(const TokenTimes& times) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kTokenParts; ++i) {
    parts[TokenPartText(static_cast<TokenPart>(i))] = times.seconds[i] * 1e6;
  }
  return {{"wall_us", times.wall_seconds * 1e6}, {"parts_us", parts}};
}

}  // namespace

std::vector<ProcessCounters> ReadProcessCounters(const ProcessGroup& group, Fleet* fleet) {
  std::vector<ProcessCounters> read;
  if (fleet == nullptr) return read;
  for (const ProcessStatistics& process : group.statistics()) {
    ProcessCounters counters;
    counters.name = process.host;
    counters.steps = process.steps;
    counters.hand_offs = process.messages;
    counters.hand_off_bytes = process.message_bytes;
    counters.compute_seconds = process.compute_seconds;
    counters.wait_seconds = process.wait_seconds;
    counters.wire_seconds = process.wire_seconds;
    counters.hand_off_seconds = process.hand_off_seconds;
    const auto index = static_cast<int32_t>(read.size());
    if (index < fleet->worker_count()) {
      const RemoteHostCounters remote = fleet->link().host(index).remote_counters();
      counters.program_sends = remote.program_sends;
      counters.requests = remote.messages_sent;
      counters.request_bytes = remote.bytes_sent;
      counters.replies = remote.messages_received;
      counters.reply_bytes = remote.bytes_received;
      counters.round_trip_seconds = remote.round_trip_seconds;
    }
    read.push_back(std::move(counters));
  }
  return read;
}

nlohmann::ordered_json ProcessCountersJson(const std::vector<ProcessCounters>& before,
                                           const std::vector<ProcessCounters>& after) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ProcessCounters& process : Between(before, after)) {
    json.push_back({{"name", process.name},
                    {"steps", process.steps},
                    {"requests_per_step", PerStep(process.requests, process)},
                    {"request_bytes_per_step", PerStep(process.request_bytes, process)},
                    {"replies_per_step", PerStep(process.replies, process)},
                    {"reply_bytes_per_step", PerStep(process.reply_bytes, process)},
                    {"messages_per_step", PerStep(process.hand_offs, process)},
                    {"bytes_per_step", PerStep(process.hand_off_bytes, process)},
                    {"program_sends", process.program_sends},
                    {"compute_us", MicrosPerStep(process.compute_seconds, process)},
                    {"wait_us", MicrosPerStep(process.wait_seconds, process)},
                    {"wire_us", MicrosPerStep(process.wire_seconds, process)},
                    {"hand_off_us", MicrosPerStep(process.hand_off_seconds, process)},
                    {"transit_us", MicrosPerStep(TransitSeconds(process), process)}});
  }
  return json;
}

std::string ProcessCountersText(const std::vector<ProcessCounters>& before,
                                const std::vector<ProcessCounters>& after) {
  std::string text;
  for (const ProcessCounters& process : Between(before, after)) {
    absl::StrAppend(
        &text,
        absl::StrFormat(
            "%s: per step %.2f requests (%.0f bytes), %.2f replies (%.0f bytes), %.2f hand-offs "
            "(%.0f bytes); computed %.0f us, waited %.0f us, wire %.0f us, hand-offs %.0f us, "
            "transit %.0f us; %d programs sent\n",
            process.name, PerStep(process.requests, process),
            PerStep(process.request_bytes, process), PerStep(process.replies, process),
            PerStep(process.reply_bytes, process), PerStep(process.hand_offs, process),
            PerStep(process.hand_off_bytes, process),
            MicrosPerStep(process.compute_seconds, process),
            MicrosPerStep(process.wait_seconds, process),
            MicrosPerStep(process.wire_seconds, process),
            MicrosPerStep(process.hand_off_seconds, process),
            MicrosPerStep(TransitSeconds(process), process), process.program_sends));
  }
  return text;
}

nlohmann::ordered_json TokenTimesJson(const std::vector<TokenTimes>& tokens) {
  nlohmann::ordered_json json = PartsJson(UsualTokenTimes(tokens));
  json["tokens"] = tokens.size();
  json["all"] = PartsJson(AllTokenTimes(tokens));
  return json;
}

std::string TokenTimesText(const std::vector<TokenTimes>& tokens) {
  const TokenTimes usual = UsualTokenTimes(tokens);
  std::string text = absl::StrFormat("a usual token took %.0f us:", usual.wall_seconds * 1e6);
  for (size_t i = 0; i < kTokenParts; ++i) {
    absl::StrAppend(
        &text, absl::StrFormat("%s %s %.0f us", i == 0 ? "" : ",",
                               TokenPartText(static_cast<TokenPart>(i)), usual.seconds[i] * 1e6));
  }
  return text;
}

}  // namespace weft
