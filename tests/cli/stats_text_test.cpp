// The statistics as people read them.

#include "frontends/cli/stats_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/base.h"
#include "tests/cli/figures.h"

namespace tuck::cli {
namespace {

// The words of the first line that begins with these words.
std::vector<std::string> line_of(const std::string& text, const std::string& label) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, label.size(), label) != 0) continue;
    std::istringstream words(line);
    std::vector<std::string> found;
    std::string word;
    while (words >> word)
      found.push_back(word);
    return found;
  }
  ADD_FAILURE() << "no line begins with '" << label << "' in:\n" << text;
  return {label, "", ""};
}

using Words = std::vector<std::string>;

TEST(StatsText, StatShowsEachPart) {
  const std::string text = render_stat(to_json(test::sample_figures()));
  EXPECT_TRUE(text.starts_with("tuck 1.2.3, process 4711, up 1 min 33 s\n")) << text;
  EXPECT_EQ(line_of(text, "original"), (Words{"original", "3.91", "MiB", "1000", "pages"}));
  EXPECT_EQ(line_of(text, "compressed"), (Words{"compressed", "0.98", "MiB", "4.00", ":", "1"}));
  EXPECT_EQ(line_of(text, "limit"), (Words{"limit", "2.00", "GiB"}));
  EXPECT_EQ(line_of(text, "same-filled"), (Words{"same-filled", "200", "pages"}));
  EXPECT_EQ(line_of(text, "incompressible"), (Words{"incompressible", "100", "pages"}));
  EXPECT_EQ(line_of(text, "swap"), (Words{"swap", "1.00", "GiB", "zstd:3", "3.91", "MiB", "0.98",
                                          "MiB", "4.00", ":", "1", "200", "100"}));
  EXPECT_EQ(line_of(text, "(default)")[1], "4.88");
  EXPECT_EQ(line_of(text, "loads corrupt"), (Words{"loads", "corrupt", "3"}));
  EXPECT_EQ(line_of(text, "payload"), (Words{"payload", "0.98", "MiB"}));
  EXPECT_EQ(line_of(text, "oom score adj"), (Words{"oom", "score", "adj", "-1000"}));
  EXPECT_EQ(line_of(text, "128"),
            (Words{"128", "8192", "64", "3", "150", "42", "24576", "18000", "6576"}));
  const Words write = line_of(text, "write");
  ASSERT_GE(write.size(), 7u) << text;
  EXPECT_EQ(write[1], "2000");
  EXPECT_EQ(write[6], "ms");
}

TEST(StatsText, WithoutRequestsThereIsNoLatency) {
  ServerFigures figures = test::sample_figures();
  figures.server->operations[0] = {};
  figures.server->operations[0].name = "read";
  EXPECT_EQ(line_of(render_stat(to_json(figures)), "read"),
            (Words{"read", "0", "0", "0", "B", "-", "-", "-", "-"}));
}

TEST(StatsText, NoLineEndsInASpace) {
  for (const std::string& text : {render_stat(to_json(test::sample_figures())),
                                  render_top(to_json(test::sample_figures()), nullptr, 0)}) {
    EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with('\n'));
  }
}

TEST(StatsText, WhatIsMissingOrOfAnotherKindIsADash) {
  for (const char* text :
       {"{}", R"({"memory":[],"exports":{},"operations":[1],"ledger":3,"classes":"x"})",
        R"({"memory":{"original_bytes":"many","pages":null},"uptime_s":"long","classes":[1,2]})",
        R"({"exports":[1,null,"x"],"operations":{"read":7},"uris":[1],"connections":[]})"}) {
    const Json document = Json::parse(text);
    EXPECT_EQ(line_of(render_stat(document), "original"), (Words{"original", "-", "-", "pages"}))
        << text;
    EXPECT_FALSE(render_top(document, document, 1).empty()) << text;
  }
}

TEST(StatsText, NamesDoNotSteerTheTerminal) {
  ServerFigures figures = test::sample_figures();
  figures.exports[0].name = "a\033[2Jb\n";
  const std::string text = render_stat(to_json(figures));
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2Jb\\x0a"), std::string::npos) << text;
}

// Whoever made the socket may say anything anywhere.
TEST(StatsText, NothingFromTheServerSteersTheTerminal) {
  const std::string evil = R"("\u001b[2J\u007f\u009b1m")";
  const Json document = Json::parse(
      R"({"version":)" + evil + R"(,"uris":[)" + evil + R"(],"exports":[{"name":)" + evil +
      R"(,"codec":)" + evil + R"(}],"operations":{)" + evil + R"(:{"requests":)" + evil +
      R"(}},"engine":{)" + evil + ":" + evil + R"(},"classes":[{)" + evil + ":" + evil + "}]}");
  for (const std::string& text : {render_stat(document), render_top(document, document, 1)}) {
    EXPECT_NE(text.find("[2J"), std::string::npos) << text;
    for (const char* control : {"\033", "\177", "\xc2\x9b"})
      EXPECT_EQ(text.find(control), std::string::npos) << text;
  }
}

TEST(StatsText, TopShowsRates) {
  const Json before = to_json(test::sample_figures());
  ServerFigures later = test::sample_figures();
  later.server->operations[1].requests += 3000;
  later.server->operations[1].bytes += uint64_t{3000} * kPageSize;
  const std::string text = render_top(to_json(later), before, 2.0);
  const Words write = line_of(text, "write");
  ASSERT_GE(write.size(), 5u) << text;
  EXPECT_EQ(write[1], "1500/s");
  EXPECT_EQ(write[2] + " " + write[3], "5.86 MiB/s");
  EXPECT_EQ(line_of(text, "read")[1], "0/s");
  EXPECT_EQ(line_of(text, "trim")[1], "-") << "the sample has no trims";
}

TEST(StatsText, TopHasNoRatesAtFirstOrFromAnotherServer) {
  const Json sample = to_json(test::sample_figures());
  EXPECT_EQ(line_of(render_top(sample, nullptr, 1.0), "write")[1], "-");
  ServerFigures restarted = test::sample_figures();
  restarted.server->operations[1].requests = 5;
  EXPECT_EQ(line_of(render_top(to_json(restarted), sample, 1.0), "write")[1], "-");
}

TEST(StatsText, Durations) {
  EXPECT_EQ(format_duration_ns(0), "0 ns");
  EXPECT_EQ(format_duration_ns(999), "999 ns");
  EXPECT_EQ(format_duration_ns(1234), "1.23 us");
  EXPECT_EQ(format_duration_ns(12'340), "12.3 us");
  EXPECT_EQ(format_duration_ns(999'400), "999 us");
  EXPECT_EQ(format_duration_ns(999'600), "1.00 ms");
  EXPECT_EQ(format_duration_ns(5'000'000'000), "5.00 s");
  EXPECT_EQ(format_duration_ns(5'000'000'000'000), "5000 s");
  EXPECT_EQ(format_uptime(-1), "0 s");
  EXPECT_EQ(format_uptime(59.9), "59 s");
  EXPECT_EQ(format_uptime(3599), "59 min 59 s");
  EXPECT_EQ(format_uptime(3600), "1 h 0 min");
  EXPECT_EQ(format_uptime(90'000), "1 d 1 h");
}

TEST(TextTable, AlignsColumns) {
  TextTable table;
  table.add_row({"a", "22", "x"});
  table.add_row({"long", "1"});
  table.add_row({"\xc3\xa4", "333", ""});
  EXPECT_EQ(table.to_string(),
            "  a      22  x\n"
            "  long    1\n"
            "  \xc3\xa4     333\n");
}

}  // namespace
}  // namespace tuck::cli
