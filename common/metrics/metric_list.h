// Metrics in Prometheus' text format.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/histogram.h"

namespace weft {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Collects metrics; each call adds one. Those of one name are told apart by their labels, which
// whoever adds them keeps few, and have their help from the first.
class MetricList {
 public:
  MetricList();
  ~MetricList();
  MetricList(const MetricList&) = delete;
  MetricList& operator=(const MetricList&) = delete;

  // Only grows while the process lives; the name ends in _total.
  void Counter(const char* name, const char* help, double value, const MetricLabels& labels = {});
  void Gauge(const char* name, const char* help, double value, const MetricLabels& labels = {});
  void Histogram(const char* name, const char* help, const HistogramView& histogram,
                 const MetricLabels& labels = {});

  std::string Text() const;

  // What there is instead of what it is now: a line `NAME TYPE HELP` for each name, with the types
  // counter, gauge and histogram. Ends in a line end.
  std::string Table() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

// The media type of Text().
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace weft
