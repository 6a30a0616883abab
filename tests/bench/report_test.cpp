// What a report says of a figure, and its two forms.
#include "bench/frame/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace tuck::bench {
namespace {

using Json = nlohmann::ordered_json;

Series series(const std::vector<double>& values) {
  Series made;
  for (const double value : values)
    made.add(value);
  return made;
}

Verdict verdict(const std::vector<double>& values, Target target) {
  return SummaryFigure{"figure", series(values), target}.verdict();
}

Setting setting() {
  Setting made;
  made.table = "sample";
  made.pages = "a (4 MB), b (8 MB)";
  made.rounds = 3;
  made.seconds = 0.5;
  made.threads = 2;
  return made;
}

Report sample() {
  Report report;
  Row row;
  row.add("who", "tuck").add("pages", int64_t{7}).add("share", 0.25);
  row.add_with_spread("store_us", series({2, 1, 3}));
  row.add("load_us", Series());
  report.add(std::move(row));
  Row other;
  other.add("who", std::string("peer")).add("iops", 12345.6);
  report.add(std::move(other));
  report.summarize("store_over_bare", series({1.0, 1.05, 1.08}), at_most(1.10));
  report.summarize("speedup", series({1.5, 1.7, 2.5}), at_least(1.6));
  report.summarize("iops", series({100, 200, 300}));
  report.summarize("never_measured", Series(), at_least(1));
  report.skip("zram", "no root");
  report.warn("the machine was busy");
  report.note("one thread");
  return report;
}

TEST(BenchReport, ATargetIsReachedOrMissedOnlyByAllRounds) {
  EXPECT_EQ(verdict({1.0, 1.05, 1.1}, at_most(1.1)), Verdict::reached);
  EXPECT_EQ(verdict({1.2, 1.3, 1.11}, at_most(1.1)), Verdict::missed);
  EXPECT_EQ(verdict({1.0, 1.0, 1.11}, at_most(1.1)), Verdict::too_wide);
  EXPECT_EQ(verdict({2.0, 2.5}, at_least(2.0)), Verdict::reached);
  EXPECT_EQ(verdict({1.0, 1.99}, at_least(2.0)), Verdict::missed);
  EXPECT_EQ(verdict({1.0, 2.5}, at_least(2.0)), Verdict::too_wide);
}

TEST(BenchReport, OnlyRoundsThatDisagreeAreWarnedOf) {
  const std::vector<std::string> warnings = sample().warnings();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "the machine was busy");
  EXPECT_TRUE(
      warnings[1].starts_with("speedup was 1.500 ... 2.500, too wide to say that it is >= 1.600"))
      << warnings[1];
}

TEST(BenchReport, WhatWasNotMeasuredIsNotThere) {
  const Report report = sample();
  ASSERT_EQ(report.summary().size(), 3u);
  for (const auto& [key, cell] : report.rows()[0].cells())
    EXPECT_NE(key, "load_us");
}

TEST(BenchReport, JsonHasTheKeysOfItsSchema) {
  const Json json = Json::parse(to_json(sample(), setting()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items())
    keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"table", "machine", "pages", "setting", "rows",
                                            "summary", "targets", "skipped", "warnings", "notes"}));
  EXPECT_EQ(json["table"], "sample");
  EXPECT_EQ(json["pages"], (Json{{"synthetic", false}, {"from", "a (4 MB), b (8 MB)"}}));
  EXPECT_EQ(json["setting"], (Json{{"rounds", 3}, {"seconds", 0.5}, {"threads", 2}}));
  EXPECT_EQ(json["skipped"], (Json::array({Json{{"who", "zram"}, {"why", "no root"}}})));
  EXPECT_EQ(json["warnings"].size(), 2u);
  EXPECT_EQ(json["notes"], Json::array({"one thread"}));
}

TEST(BenchReport, JsonRowsAreFlatAndKeepTheirOrder) {
  const Json json = Json::parse(to_json(sample(), setting()));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0].dump(),
            R"({"who":"tuck","pages":7,"share":0.25,"store_us":2.0,"store_us_spread":1.0})");
  EXPECT_EQ(json["rows"][1].dump(), R"({"who":"peer","iops":12345.6})");
}

TEST(BenchReport, JsonSummaryHasMediansSpreadsAndVerdicts) {
  const Json json = Json::parse(to_json(sample(), setting()));
  EXPECT_EQ(json["summary"]["iops"], 200);
  EXPECT_EQ(json["summary"]["iops_spread"], 1);
  EXPECT_EQ(json["summary"]["store_over_bare"], 1.05);
  ASSERT_EQ(json["targets"].size(), 2u) << "iops has none";
  EXPECT_EQ(json["targets"][0],
            (Json{{"figure", "store_over_bare"}, {"reach", "<= 1.100"}, {"verdict", "reached"}}));
  EXPECT_EQ(json["targets"][1]["verdict"], "too wide");
}

TEST(BenchReport, AnEmptyReportIsStillAnObject) {
  const Json json = Json::parse(to_json(Report(), setting()));
  EXPECT_TRUE(json["rows"].is_array());
  EXPECT_TRUE(json["summary"].is_object());
  EXPECT_TRUE(json["targets"].is_array());
  EXPECT_FALSE(to_text(Report(), setting()).empty());
}

bool has_line(const std::string& text, const std::string& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::string joined;
    for (std::string word; stream >> word;)
      joined += (joined.empty() ? "" : " ") + word;
    if (joined == words) return true;
  }
  return false;
}

TEST(BenchReport, TextHasARowALineAndADashWhereARowHasNoSuchFigure) {
  const std::string text = to_text(sample(), setting());
  EXPECT_TRUE(has_line(text, "who pages share store_us store_us_spread iops")) << text;
  EXPECT_TRUE(has_line(text, "tuck 7 0.250 2.000 1.000 -")) << text;
  EXPECT_TRUE(has_line(text, "peer - - - - 12346")) << text;
}

TEST(BenchReport, TextSaysWhatIsReachedAndWhatHasToBeKnown) {
  const std::string text = to_text(sample(), setting());
  EXPECT_TRUE(text.starts_with("sample: 3 rounds of 0.5 s, ")) << text;
  EXPECT_TRUE(has_line(text, "pages: a (4 MB), b (8 MB)")) << text;
  EXPECT_TRUE(has_line(text, "one thread")) << text;
  EXPECT_TRUE(has_line(text, "store_over_bare 1.050 1.000 ... 1.080 <= 1.100 reached")) << text;
  EXPECT_TRUE(has_line(text, "speedup 1.700 1.500 ... 2.500 >= 1.600 too wide")) << text;
  EXPECT_TRUE(has_line(text, "iops 200.0 100.0 ... 300.0")) << text;
  EXPECT_TRUE(has_line(text, "skipped: zram: no root")) << text;
  EXPECT_TRUE(has_line(text, "WARNING: the machine was busy")) << text;
  EXPECT_EQ(text.find("never_measured"), std::string::npos) << text;
}

}  // namespace
}  // namespace tuck::bench
