#include "common/metrics/metric_list.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>

namespace weft {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct MetricList::Families {
  // A metric more in the family of that name.
  ClientMetric& Add(const char* name, const char* help, MetricType type,
                    const MetricLabels& labels) {
    auto family = std::find_if(all.begin(), all.end(),
                               [name](const MetricFamily& known) { return known.name == name; });
    if (family == all.end()) {
      family = all.emplace(all.end());
      family->name = name;
      family->help = help;
      family->type = type;
    }
    ClientMetric& metric = family->metric.emplace_back();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    return metric;
  }

  std::vector<MetricFamily> all;
};

MetricList::MetricList() : families_(std::make_unique<Families>()) {}
MetricList::~MetricList() = default;

void MetricList::Counter(const char* name, const char* help, double value,
                         const MetricLabels& labels) {
  families_->Add(name, help, MetricType::Counter, labels).counter.value = value;
}

void MetricList::Gauge(const char* name, const char* help, double value,
                       const MetricLabels& labels) {
  families_->Add(name, help, MetricType::Gauge, labels).gauge.value = value;
}

void MetricList::Histogram(const char* name, const char* help, const HistogramView& histogram,
                           const MetricLabels& labels) {
  ClientMetric::Histogram& shown =
      families_->Add(name, help, MetricType::Histogram, labels).histogram;
  shown.sample_count = static_cast<uint64_t>(histogram.count);
  shown.sample_sum = histogram.sum;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < histogram.bounds.size(); ++i) {
    cumulative += static_cast<uint64_t>(histogram.counts[i]);
    shown.bucket.push_back({cumulative, histogram.bounds[i]});
  }
  shown.bucket.push_back({shown.sample_count, std::numeric_limits<double>::infinity()});
}

std::string MetricList::Text() const {
  return prometheus::TextSerializer().Serialize(families_->all);
}

std::string MetricList::Table() const {
  std::string table;
  for (const MetricFamily& family : families_->all) {
    const char* type = family.type == MetricType::Counter     ? " counter "
                       : family.type == MetricType::Histogram ? " histogram "
                                                              : " gauge ";
    table.append(family.name).append(type).append(family.help).append("\n");
  }
  return table;
}

}  // namespace weft
