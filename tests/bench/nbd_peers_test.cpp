// The NBD servers that tuck is compared with: they serve what they were filled with, their memory
// is counted, fio's figures are understood, and what is missing or fails says so.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "bench/frame/process.h"
#include "bench/peers/fio.h"
#include "bench/peers/nbd_server.h"
#include "tests/bench/scratch.h"

namespace tuck::bench {
namespace {

constexpr double kPatience = 60;      // seconds; only a hang takes that long
constexpr uint64_t kDisk = 8u << 20;  // bytes
constexpr double kFioSeconds = 0.1;   // enough for a request

// Compresses well, and no two pages are alike.
std::string pages() {
  std::string bytes(kDisk, '\0');
  for (uint64_t page = 0; page < kDisk / kPageSize; ++page) {
    for (uint64_t at = 0; at < kPageSize; ++at)
      bytes[page * kPageSize + at] =
          static_cast<char>(at % 64 == 0 ? page % 251 + 1 : page / 251 + at % 7);
  }
  return bytes;
}

struct Kind {
  const char* name;  // of the test
  NbdKind kind;
  const char* program;
  const char* codec;
};
// GoogleTest looks for this name; ctest has what it prints in the test's.
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class NbdPeers : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    for (const std::string program : {GetParam().program, "fio", "nbdcopy"}) {
      if (!program.empty() && program_path(program).empty())
        GTEST_SKIP() << program << " is not installed";
    }
    auto folder = ScratchFolder::create(2 * kDisk);
    ASSERT_TRUE(folder) << folder.error().message;
    folder_.emplace(std::move(*folder));
    if (GetParam().kind == NbdKind::qemu_nbd && !folder_->in_memory())
      GTEST_SKIP() << "/dev/shm is no tmpfs with room for the disk";
  }
  NbdDisk disk() const { return {GetParam().kind, GetParam().codec, kDisk}; }

  std::optional<ScratchFolder> folder_;
  test::Scratch scratch_;
};

TEST_P(NbdPeers, ServesWhatItWasFilledWithAndItsMemoryIsCounted) {
  const std::string written = pages();
  const std::string file = scratch_.write("pages", written);
  auto server = NbdServer::start(disk(), *folder_);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_LT(server->memory_bytes(), kDisk / 4) << "the empty disk";
  const auto seconds = server->fill(file);
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GT(*seconds, 0);
  const auto copied = run({{"nbdcopy", server->uri(), scratch_.file("back")}, {}}, kPatience);
  ASSERT_TRUE(copied) << copied.error().message;
  const bool null = GetParam().kind == NbdKind::null;
  EXPECT_TRUE(scratch_.read("back") == (null ? std::string(kDisk, '\0') : written));
  const bool plain =
      GetParam().kind == NbdKind::nbdkit_memory || GetParam().kind == NbdKind::qemu_nbd;
  if (plain) {
    EXPECT_GE(server->memory_bytes(), kDisk);
  } else if (!null) {
    EXPECT_GT(server->memory_bytes(), kDisk / 100);
    EXPECT_LT(server->memory_bytes(), kDisk);
  }
}

TEST_P(NbdPeers, FioFiguresBelongTogether) {
  auto server = NbdServer::start(disk(), *folder_);
  ASSERT_TRUE(server) << server.error().message;
  for (const FioJob& job : {FioJob{"randread", "4k", 1}, FioJob{"write", "64k", 8}}) {
    const auto figures = run_fio(job, server->uri(), kDisk, kFioSeconds);
    ASSERT_TRUE(figures) << figures.error().message;
    const double bytes = std::string_view(job.bs) == "4k" ? 4096 : 65536;
    EXPECT_GT(figures->iops, 0);
    EXPECT_NEAR(figures->mb_s, figures->iops * bytes / 1e6, figures->mb_s / 100);
    EXPECT_GT(figures->p50_us, 0);
    EXPECT_LE(figures->p50_us, figures->p99_us);
  }
}

TEST_P(NbdPeers, NothingIsLeftInItsFolder) {
  {
    auto server = NbdServer::start(disk(), *folder_);
    ASSERT_TRUE(server) << server.error().message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_->path()));
}

INSTANTIATE_TEST_SUITE_P(All, NbdPeers,
                         testing::Values(Kind{"Tuck", NbdKind::tuck, "", "lz4"},
                                         Kind{"NbdkitMemory", NbdKind::nbdkit_memory, "nbdkit", ""},
                                         Kind{"NbdkitMemoryZstd", NbdKind::nbdkit_memory_zstd,
                                              "nbdkit", ""},
                                         Kind{"QemuNbd", NbdKind::qemu_nbd, "qemu-nbd", ""},
                                         Kind{"Null", NbdKind::null, "", ""}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(NbdPeer, AServerThatDoesNotStartSaysWhy) {
  const auto folder = ScratchFolder::create(kDisk);
  ASSERT_TRUE(folder) << folder.error().message;
  const auto server = NbdServer::start({NbdKind::tuck, "no-such-codec", kDisk}, *folder);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("no-such-codec"), std::string::npos)
      << server.error().message;
}

TEST(NbdPeer, FioWithoutAServerIsAnError) {
  const test::Scratch scratch;
  const auto figures = run_fio({"randread", "4k", 1},
                               "nbd+unix:///?socket=" + scratch.file("nobody"), kDisk, kFioSeconds);
  EXPECT_FALSE(figures);
}

TEST(NbdPeer, TheDefaultCodecIsOneThatTuckTakes) {
  const auto folder = ScratchFolder::create(kDisk);
  ASSERT_TRUE(folder) << folder.error().message;
  const auto codec = default_codec(*folder);
  ASSERT_TRUE(codec) << codec.error().message;
  const auto server = NbdServer::start({NbdKind::tuck, *codec, kDisk}, *folder);
  EXPECT_TRUE(server) << server.error().message;
}

}  // namespace
}  // namespace tuck::bench
