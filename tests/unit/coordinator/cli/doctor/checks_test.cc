#include "coordinator/cli/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weft {
namespace {

using ::testing::HasSubstr;

HostFacts GoodHost() {
  HostFacts facts;
  facts.unix_microseconds = 0;
  facts.clock_held = true;
  facts.kernel = "6.1";
  facts.processors = 8;
  facts.memory_bytes = int64_t{32} << 30;
  facts.memory_available = int64_t{20} << 30;
  facts.shared_bytes = int64_t{16} << 30;
  facts.shared_free = int64_t{16} << 30;
  facts.huge_pages = "madvise";
  facts.locked_limit = 65536;
  facts.open_files_limit = 65536;
  return facts;
}

FindingLevel WorstOf(const std::vector<Finding>& findings) {
  FindingLevel worst = FindingLevel::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.level);
  return worst;
}

// The one finding that is not good.
Finding Only(const std::vector<Finding>& findings) {
  std::vector<Finding> bad;
  for (const Finding& finding : findings) {
    if (finding.level != FindingLevel::kGood) bad.push_back(finding);
  }
  EXPECT_EQ(bad.size(), 1);
  return bad.empty() ? Finding{} : bad[0];
}

TEST(DoctorChecksTest, Host_ThatIsFit_HasNothingToChange) {
  const std::vector<Finding> findings = CheckHost("m", GoodHost());
  EXPECT_EQ(WorstOf(findings), FindingLevel::kGood);
  EXPECT_THAT(findings[0].text, HasSubstr("8 processors, 20.0 GiB of 32.0 GiB"));
}

TEST(DoctorChecksTest, Host_Finds_EachFault) {
  HostFacts facts = GoodHost();
  facts.processor_limit = 2.5;
  Finding found = Only(CheckHost("m", facts));
  EXPECT_EQ(found.level, FindingLevel::kNote);
  EXPECT_THAT(found.text, HasSubstr("8 processors are seen, 2.50 may be used"));
  EXPECT_THAT(found.advice, HasSubstr("(that makes 2)"));

  facts = GoodHost();
  facts.memory_limit = int64_t{4} << 30;
  found = Only(CheckHost("m", facts));
  EXPECT_THAT(found.text, HasSubstr("limited to 4.0 GiB of 32.0 GiB"));
  EXPECT_THAT(found.advice, HasSubstr("(that gives out 3.8 GiB)"));

  facts = GoodHost();
  facts.shared_bytes = 64 << 20;
  facts.shared_free = 63 << 20;
  found = Only(CheckHost("m", facts));
  EXPECT_EQ(found.level, FindingLevel::kWarning);
  EXPECT_THAT(found.text, HasSubstr("63 MiB free of 64 MiB"));
  EXPECT_THAT(found.advice, HasSubstr("--shm-size"));

  facts = GoodHost();
  facts.shared_bytes = facts.shared_free = -1;
  EXPECT_THAT(Only(CheckHost("m", facts)).text, HasSubstr("no /dev/shm"));

  facts = GoodHost();
  facts.open_files_limit = 256;
  EXPECT_THAT(Only(CheckHost("m", facts)).text, HasSubstr("256 files"));

  facts = GoodHost();
  facts.has_rdma = true;
  EXPECT_THAT(Only(CheckHost("m", facts)).advice, HasSubstr("LimitMEMLOCK"));

  facts = GoodHost();
  facts.huge_pages = "never";
  EXPECT_EQ(Only(CheckHost("m", facts)).level, FindingLevel::kNote);

  facts = GoodHost();
  facts.clock_held = false;
  EXPECT_EQ(Only(CheckHost("m", facts)).level, FindingLevel::kNote);
}

TEST(DoctorChecksTest, Clock_MayBeOff_ByWhatTheMeasureDoesNotKnow) {
  EXPECT_EQ(CheckClock("w0", 0.3, 0.01).level, FindingLevel::kGood);
  EXPECT_EQ(CheckClock("w0", -3, 1.5).level, FindingLevel::kGood);
  const Finding off = CheckClock("w0", -3, 0.5);
  EXPECT_EQ(off.level, FindingLevel::kWarning);
  EXPECT_THAT(off.text, HasSubstr("behind by 3.000 s"));
}

TEST(DoctorChecksTest, Worker_Finds_OtherReleases_AndWrongOps) {
  WorkerReport worker;
  worker.name = "w0";
  worker.address = "10.0.0.2:7000";
  worker.host = "box";
  worker.release = "1.2.3";
  EXPECT_EQ(WorstOf(CheckWorker(worker, "1.2.3")), FindingLevel::kGood);
  EXPECT_THAT(Only(CheckWorker(worker, "1.3.0")).text, HasSubstr("weft 1.2.3, here is 1.3.0"));
  worker.devices = {{"w0.cpu0", "cpu", "", {}, {"rope F32"}}};
  const Finding found = Only(CheckWorker(worker, "1.2.3"));
  EXPECT_EQ(found.level, FindingLevel::kWarning);
  EXPECT_THAT(found.text, HasSubstr("w0.cpu0 computed wrong results"));
  EXPECT_EQ(found.subject, "w0 (10.0.0.2:7000)");
}

TEST(DoctorChecksTest, Link_Finds_WhatIsSlow_OrTakesAWayRound) {
  LinkReport link{"w0", "w1", true, "posix+cma", "", 8, 3e9};
  EXPECT_EQ(CheckLink(link).level, FindingLevel::kGood);
  link.transport = "tcp";
  EXPECT_EQ(CheckLink(link).level, FindingLevel::kWarning);
  EXPECT_THAT(CheckLink(link).text, HasSubstr("though both are on one machine"));
  link.same_host = false;
  EXPECT_EQ(CheckLink(link).level, FindingLevel::kGood);
  link.latency_us = 900;
  EXPECT_EQ(CheckLink(link).level, FindingLevel::kNote);
  link.error = "w0 cannot reach w1";
  EXPECT_EQ(CheckLink(link).level, FindingLevel::kProblem);
  EXPECT_THAT(CheckLink(link).advice, HasSubstr("--announce"));
}

TEST(DoctorChecksTest, Certificate_Ends_InTime) {
  CertificateFacts facts;
  facts.name = "gpu1";
  facts.role = TlsRole::kWorker;
  facts.not_before = 0;
  facts.not_after = 100 * 86400;
  EXPECT_EQ(CheckCertificate("c", facts, 86400).level, FindingLevel::kGood);
  const Finding soon = CheckCertificate("c", facts, 90 * 86400);
  EXPECT_EQ(soon.level, FindingLevel::kWarning);
  EXPECT_THAT(soon.text, HasSubstr("10 days are left"));
  EXPECT_EQ(CheckCertificate("c", facts, 101 * 86400).level, FindingLevel::kProblem);
}

}  // namespace
}  // namespace weft
