// The statistics document: what it says, and that docs/stat.md lists exactly its keys.

#include "frontends/cli/stats_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/figures.h"

namespace tuck::cli {
namespace {

using Keys = std::set<std::string>;

Keys keys_of(const Json& object) {
  Keys keys;
  for (const auto& [key, member] : object.items())
    keys.insert(key);
  return keys;
}

// All `words` in backquotes of a text.
Keys quoted_in(const std::string& text) {
  Keys words;
  size_t at = 0;
  while ((at = text.find('`', at)) != std::string::npos) {
    const size_t end = text.find('`', at + 1);
    if (end == std::string::npos) break;
    words.insert(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

// The keys in the first column of docs/stat.md's tables, by section; "" is what stands before the
// first heading.
std::map<std::string, Keys> documented_keys() {
  std::ifstream file(TUCK_STAT_DOCUMENT);
  EXPECT_TRUE(file) << TUCK_STAT_DOCUMENT;
  std::map<std::string, Keys> sections;
  std::string section;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("## ")) {
      const Keys words = quoted_in(line.substr(0, line.find(':')));
      EXPECT_GE(words.size(), 1u) << line;
      section = line.substr(line.find('`') + 1);
      section = section.substr(0, section.find('`'));
    } else if (line.starts_with("| `")) {
      sections[section].merge(quoted_in(line.substr(0, line.find(" | "))));
    }
  }
  return sections;
}

TEST(StatsJson, EveryKeyIsDocumentedAndNoOther) {
  const Json document = to_json(test::sample_figures());
  std::map<std::string, Keys> documented = documented_keys();

  Keys top = documented[""];
  for (const auto& [section, keys] : documented) {
    if (!section.empty()) top.insert(section);
  }
  EXPECT_EQ(keys_of(document), top);
  for (const char* section :
       {"memory", "connections", "engine", "ledger", "process", "protections"}) {
    EXPECT_EQ(keys_of(document[section]), documented[section]) << section;
  }
  for (const char* list : {"exports", "classes"}) {
    ASSERT_FALSE(document[list].empty()) << list;
    for (const Json& one : document[list])
      EXPECT_EQ(keys_of(one), documented[list]) << list;
  }
  ASSERT_FALSE(document["operations"].empty());
  for (const Json& one : document["operations"]) {
    EXPECT_EQ(keys_of(one), documented["operations"]);
  }
}

TEST(StatsJson, ThePoolsFigures) {
  const Json memory = to_json(test::sample_figures())["memory"];
  EXPECT_EQ(memory["pages"], 1000);
  EXPECT_EQ(memory["original_bytes"], 4'096'000);
  EXPECT_EQ(memory["compressed_bytes"], 1'024'000);
  EXPECT_EQ(memory["compression_ratio"], 4.0);
  EXPECT_EQ(memory["same_filled_pages"], 200);
  EXPECT_EQ(memory["incompressible_pages"], 100);
  EXPECT_EQ(memory["limit_bytes"], 2u << 30);
}

TEST(StatsJson, TheLedgersPartsAddUp) {
  const Json document = to_json(test::sample_figures());
  uint64_t sum = 0;
  for (const auto& [key, member] : document["ledger"].items()) {
    if (key != "sum_bytes" && !key.starts_with("kernel_")) sum += member.get<uint64_t>();
  }
  EXPECT_EQ(document["ledger"]["sum_bytes"], sum);
  EXPECT_EQ(document["memory"]["resident_bytes"], sum);
  EXPECT_EQ(document["ledger"]["kernel_resident_bytes"], 5'250'000);
  EXPECT_EQ(document["ledger"]["kernel_swapped_bytes"], 4096);
}

TEST(StatsJson, ExportsAndClasses) {
  const Json document = to_json(test::sample_figures());
  EXPECT_EQ(document["exports"][0]["name"], "swap");
  EXPECT_EQ(document["exports"][0]["codec"], "zstd:3");
  EXPECT_EQ(document["exports"][0]["pages"], 1000);
  EXPECT_EQ(document["exports"][1]["name"], "");
  EXPECT_EQ(document["exports"][1]["size_bytes"], 5000);
  EXPECT_EQ(document["exports"][1]["pages"], 0);
  const Json& one = document["classes"][0];
  EXPECT_EQ(one["zspage_bytes"], 8192);
  EXPECT_EQ(one["resident_bytes"], 3 * 8192);
  EXPECT_EQ(one["wasted_bytes"], 3 * 8192 - 18'000);
}

TEST(StatsJson, LatenciesAreWithinASixteenth) {
  const Json read = to_json(test::sample_figures())["operations"]["read"];
  EXPECT_EQ(read["requests"], 4000);
  for (const char* key :
       {"latency_p50_ns", "latency_p99_ns", "latency_p999_ns", "latency_max_ns"}) {
    EXPECT_GE(read[key], 12'000) << key;
    EXPECT_LE(read[key], 12'000 * 17 / 16) << key;
  }
}

TEST(StatsJson, ARatioOfNothingIsNull) {
  ServerFigures figures;
  figures.exports = {{.name = "", .size_bytes = 4096}};
  figures.engine.areas.resize(1);
  const Json document = to_json(figures);
  EXPECT_TRUE(document["memory"]["compression_ratio"].is_null());
  EXPECT_TRUE(document["memory"]["memory_ratio"].is_null());
  EXPECT_TRUE(document["exports"][0]["compression_ratio"].is_null());
}

TEST(StatsJson, WithoutAServerItsPartsAreAbsent) {
  ServerFigures figures = test::sample_figures();
  figures.server.reset();
  const Json document = to_json(figures);
  EXPECT_FALSE(document.contains("operations"));
  EXPECT_FALSE(document.contains("connections"));
  EXPECT_TRUE(document.contains("memory"));
}

TEST(AnswerRequest, StatGetsTheFigures) {
  const auto figures = [] { return Json{{"pid", 1}}; };
  EXPECT_EQ(answer_request(R"({"command":"stat"})", figures), "{\"pid\":1}\n");
  EXPECT_EQ(answer_request(R"( {"command": "stat", "later": 1} )", figures), "{\"pid\":1}\n");
}

TEST(AnswerRequest, AnythingElseGetsAnError) {
  const auto figures = []() -> Json {
    ADD_FAILURE() << "asked for figures";
    return nullptr;
  };
  for (const char* line : {"", "stat", "{", "[]", "1", "null", "{}", R"({"command":1})",
                           R"({"command":"stop"})", R"({"command":["stat"]})", "\xff\xfe"}) {
    const std::string answer = answer_request(line, figures);
    ASSERT_TRUE(answer.ends_with('\n')) << line;
    const Json document = Json::parse(answer);
    EXPECT_EQ(keys_of(document), Keys{"error"}) << line;
  }
}

TEST(AnswerRequest, ANameThatIsNotUtf8IsStillAnswered) {
  ServerFigures figures = test::sample_figures();
  figures.exports[0].name = "a\xff";
  const std::string answer =
      answer_request(R"({"command":"stat"})", [&] { return to_json(figures); });
  const Json document = Json::parse(answer, nullptr, false);
  ASSERT_TRUE(document.is_object()) << answer;
  EXPECT_EQ(document["exports"][0]["name"], "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace tuck::cli
