#include "common/metrics/metric_list.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::HasSubstr;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MetricListTest, MetricsOfOneNameShareTheirHead) {
  MetricList list;
  list.Gauge("weft_pages", "Pages.", 3, {{"state", "used"}});
  list.Counter("weft_steps_total", "Steps.", 7);
  list.Gauge("weft_pages", "Pages.", 5, {{"state", "free"}});
  const std::string text = list.Text();
  EXPECT_EQ(Count(text, "# TYPE weft_pages gauge\n"), 1) << text;
  EXPECT_EQ(Count(text, "# HELP weft_pages Pages.\n"), 1) << text;
  EXPECT_THAT(text, HasSubstr("weft_pages{state=\"used\"} 3\nweft_pages{state=\"free\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE weft_steps_total counter\nweft_steps_total 7\n"));
}

TEST(MetricListTest, TheTableNamesEachOnce) {
  const SizeHistogram histogram;
  MetricList list;
  list.Gauge("weft_pages", "Pages of it.", 3, {{"state", "used"}});
  list.Gauge("weft_pages", "Pages of it.", 5, {{"state", "free"}});
  list.Counter("weft_steps_total", "Steps.", 7);
  list.Histogram("weft_batch", "Batch.", histogram.view());
  EXPECT_EQ(list.Table(),
            "weft_pages gauge Pages of it.\nweft_steps_total counter Steps.\n"
            "weft_batch histogram Batch.\n");
}

TEST(MetricListTest, LabelsAreEscaped) {
  MetricList list;
  list.Gauge("weft_x", "X.", 1, {{"name", "a\"b\\c\nd"}});
  EXPECT_THAT(list.Text(), HasSubstr("weft_x{name=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(MetricListTest, BucketsAreCumulative) {
  SizeHistogram histogram;
  for (const double value : {1.0, 2.0, 2.0, 5000.0}) histogram.Add(value);
  MetricList list;
  list.Histogram("weft_batch", "Batch.", histogram.view());
  const std::string text = list.Text();
  EXPECT_THAT(text, HasSubstr("weft_batch_bucket{le=\"1\"} 1\nweft_batch_bucket{le=\"2\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("weft_batch_bucket{le=\"2048\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("weft_batch_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("weft_batch_count 4\nweft_batch_sum 5005\n"));
}

}  // namespace
}  // namespace weft
