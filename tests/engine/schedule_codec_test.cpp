// The codec changes while pages are stored.
#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

class EngineScheduleCodec : public EngineSchedule {
 protected:
  CodecKind codec_of(uint32_t at) { return static_cast<CodecKind>(entry(at).codec()); }
};

// setter: set_codec(zstd) ── some contexts are able to, not all ──────────── announces it
// test:                        store: with the codec that there was
//
// A store that is told of a codec finds it in every context.
TEST_F(EngineScheduleCodec, IsAnnouncedWhenEveryContextIsAbleTo) {
  SyncStop some_made("engine.codecs.context_made", 3);
  Actor setter([&] { EXPECT_EQ(engine_->set_codec(area_, {CodecKind::zstd, 9}), std::nullopt); });
  ASSERT_TRUE(some_made.wait_until_reached());
  for (uint32_t at = 0; at < 32; ++at) {
    ASSERT_EQ(store(at, 1, PageKind::text), Errc::ok);
    ASSERT_EQ(codec_of(at), CodecKind::lz4);
  }
  some_made.let_go();
  setter.join();
  ASSERT_EQ(store(40, 1, PageKind::text), Errc::ok);
  EXPECT_EQ(codec_of(40), CodecKind::zstd);
  for (uint32_t at = 0; at < 32; ++at)
    EXPECT_TRUE(holds(at, 1, PageKind::text)) << at;
  EXPECT_TRUE(holds(40, 1, PageKind::text));
  expect_clean();
}

// writer: store, prepared with lz4 ─────────────────────────────────── publishes
// test:                             set_codec(none), store over it
//
// Each page keeps the codec that it was made with, whichever is published last.
TEST_F(EngineScheduleCodec, APageKeepsTheCodecThatItWasMadeWith) {
  SyncStop prepared("engine.store.prepared");
  Actor writer([&] { EXPECT_EQ(store(0, 1, PageKind::text), Errc::ok); });
  ASSERT_TRUE(prepared.wait_until_reached());
  ASSERT_EQ(engine_->set_codec(area_, {CodecKind::none, 0}), std::nullopt);
  ASSERT_EQ(store(0, 2, PageKind::text), Errc::ok);
  EXPECT_EQ(codec_of(0), CodecKind::none);
  EXPECT_TRUE(holds(0, 2, PageKind::text));
  prepared.let_go();
  writer.join();
  EXPECT_EQ(codec_of(0), CodecKind::lz4);
  EXPECT_TRUE(holds(0, 1, PageKind::text));
  expect_clean();
}

}  // namespace
}  // namespace tuck::engine::test
