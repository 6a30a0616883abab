// Each allocation of a start fails, once and from then on; and there are none after it.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/faults/scenario.h"
#include "tests/faults/watchdog.h"
#include "tests/faults/wrapped_calls.h"

namespace tuck::test {
namespace {

class Allocations : public testing::TestWithParam<bool> {};

TEST_P(Allocations, AStartWithoutMemoryIsAnErrorAndLeavesNothing) {
  const Immune immune;
  const bool for_good = GetParam();
  Watchdog watchdog;
  Endless endless;
  uint32_t starts_failed = 0;
  uint64_t nth = 1;
  for (bool struck = true; struck && !HasFailure(); ++nth) {
    const std::string name = "allocation " + std::to_string(nth);
    SCOPED_TRACE(name);
    watchdog.begin(name);
    const Holdings before = holdings();
    {
      Scenario scenario(nth % 2 == 0);
      arm({"operator_new", nth, ENOMEM, for_good});
      const bool started = scenario.start();
      lift();
      struck = hits() != 0;
      if (!started) {
        ++starts_failed;
        EXPECT_TRUE(struck);
        EXPECT_FALSE(scenario.message().empty());
        // Parts that had started are still there.
        EXPECT_TRUE(scenario.start()) << scenario.message();
      }
      if (nth % 16 == 0) scenario.check_service(endless);
      scenario.end();
      EXPECT_EQ(scenario.wrong(), "");
    }
    EXPECT_TRUE(eventually([&] { return holdings() == before; }))
        << "before: " << to_string(before) << "\nafter:  " << to_string(holdings());
  }
  std::printf("%llu allocations, %u starts failed\n", static_cast<unsigned long long>(nth - 1),
              starts_failed);
  EXPECT_GT(starts_failed, 100u);
}

INSTANTIATE_TEST_SUITE_P(OnceAndForGood, Allocations, testing::Bool());

TEST(AllocationsAfterTheStart, ServingAndStoppingGoOnWithoutAny) {
  const Immune immune;
  Watchdog watchdog;
  Endless endless;
  Scenario scenario(true);
  ASSERT_TRUE(scenario.start());
  arm({"operator_new", 1, ENOMEM, true});
  EXPECT_EQ(scenario.run_script(endless), 0u);
  scenario.check_service(endless);
  {
    const Exposed exposed;
    const nbd::ServerReport report = scenario.server().report();
    const engine::Stats stats = scenario.engine().stats();
    const Status codec =
        scenario.engine().set_codec(AreaId{0}, engine::CodecSetting{engine::CodecKind::zstd, 19});
    const Status area = scenario.engine().remove_area(AreaId{77});
    const Immune again;
    EXPECT_FALSE(report.complete);
    // What a decision may hang on is there all the same.
    EXPECT_GT(report.connections_accepted, 3u);
    EXPECT_FALSE(stats.complete);
    ASSERT_TRUE(codec);
    EXPECT_EQ(codec->code, Errc::no_space);
    ASSERT_TRUE(area);
    EXPECT_FALSE(area->message.empty());
  }
  scenario.check_service(endless);
  scenario.end();
  EXPECT_GT(hits(), 4u);
  lift();
  EXPECT_EQ(scenario.wrong(), "");
}

}  // namespace
}  // namespace tuck::test
