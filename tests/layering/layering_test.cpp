// Every #include in the product's folders keeps the order of the layers. The cases after the first
// plant violations, so that a checker that finds nothing cannot pass.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/layering/include_rules.h"

namespace tuck::layering {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TUCK_SOURCE_DIR;

std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp" || extension == ".c")
      files.push_back(entry.path());
  }
  return files;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += line + "\n";
  return text;
}

TEST(Layering, EveryIncludeKeepsTheOrder) {
  std::vector<std::string> violations;
  size_t files = 0;
  for (const char* folder : {"base", "allocator", "engine", "frontends"}) {
    for (const fs::path& file : sources_in(kRoot / folder)) {
      ++files;
      for (std::string& line : violations_in(fs::relative(file, kRoot).string(), text_of(file))) {
        violations.push_back(std::move(line));
      }
    }
  }
  EXPECT_TRUE(violations.empty()) << all(violations);
  // Fewer would mean that the walk looks in the wrong place.
  EXPECT_GE(files, 30u);
}

TEST(Layering, FacadesExist) {
  for (const Layer& layer : layers()) {
    if (layer.facade.empty() || !fs::exists(kRoot / layer.folder)) continue;
    EXPECT_TRUE(fs::exists(kRoot / layer.facade)) << layer.facade;
  }
}

TEST(LayeringChecker, FindsAPlantedLayerBelow) {
  const auto found = violations_in("base/result.cpp",
                                   "#include <string>\n"
                                   "  #  include \"engine/engine.h\"\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("base/result.cpp:2: engine/engine.h stands below")) << found[0];
}

TEST(LayeringChecker, FindsAPlantedHeaderBehindAFacade) {
  const auto found = violations_in("frontends/nbd/worker.cpp",
                                   "#include \"frontends/nbd/nbd.h\"\n"
                                   "#include \"engine/slot_table.h\"\n"
                                   "#include <base/mutex.h>");
  ASSERT_EQ(found.size(), 2u) << all(found);
  EXPECT_TRUE(found[0].ends_with("inside engine: include engine/engine.h")) << found[0];
  EXPECT_TRUE(found[1].ends_with("inside base: include base/base.h")) << found[1];
}

TEST(LayeringChecker, FindsWhatIsInNoLayer) {
  EXPECT_TRUE(violation("engine/store.cpp", "tests/support/random.h"));
  EXPECT_TRUE(violation("engine/store.cpp", "../base/base.h"));
  EXPECT_TRUE(violation("frontends/cli/main.cpp", "frontends/new/new.h"));
  EXPECT_TRUE(violation("frontends/new/new.cpp", "base/base.h"));
}

TEST(LayeringChecker, AllowsWhatTheRulesAllow) {
  EXPECT_FALSE(violation("engine/store.cpp", "engine/entry.h"));
  EXPECT_FALSE(violation("engine/store.cpp", "base/base.h"));
  EXPECT_FALSE(violation("frontends/nbd/server.cpp", "frontends/vm/vm.h"));
  EXPECT_FALSE(violation("frontends/cli/main.cpp", "frontends/nbd/nbd.h"));
  EXPECT_FALSE(violation("base/mutex.cpp", "sys/mman.h"));
  EXPECT_FALSE(included_path("// #include \"engine/engine.h\""));
  EXPECT_EQ(included_path("#include <vector>  // for runs"), "vector");
}

}  // namespace
}  // namespace tuck::layering
