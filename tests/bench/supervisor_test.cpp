// That a bench leaves its machine as it was, however it ends: bench_supervised changes a folder,
// and is killed.
#include "bench/frame/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "bench/frame/process.h"
#include "tests/bench/scratch.h"

namespace tuck::bench {
namespace {

using test::Scratch;

constexpr double kPatience = 60;  // seconds; only a hang takes that long

Undo write_back(const std::string& path, const std::string& text) {
  return {Undo::Kind::write_file, path, text};
}

TEST(BenchRestored, TakesBackOnceWhenItGoes) {
  const Scratch scratch;
  const std::string file = scratch.write("file", "new");
  {
    const Restored restored(write_back(file, "old"));
    EXPECT_EQ(scratch.read("file"), "new");
  }
  EXPECT_EQ(scratch.read("file"), "old");
}

TEST(BenchRestored, TakesBackEarlierWhenAsked) {
  const Scratch scratch;
  const std::string file = scratch.write("file", "new");
  {
    Restored restored(write_back(file, "old"));
    EXPECT_FALSE(restored.restore());
    EXPECT_EQ(scratch.read("file"), "old");
    scratch.write("file", "mine");
    EXPECT_FALSE(restored.restore()) << "nothing is left to do";
  }
  EXPECT_EQ(scratch.read("file"), "mine");
}

TEST(BenchRestored, MovesWithItsStep) {
  const Scratch scratch;
  const std::string file = scratch.write("file", "new");
  std::optional<Restored> kept;
  {
    Restored restored(write_back(file, "old"));
    kept.emplace(std::move(restored));
  }
  EXPECT_EQ(scratch.read("file"), "new");
  kept.reset();
  EXPECT_EQ(scratch.read("file"), "old");
}

TEST(BenchRestored, SaysWhatItCouldNotDo) {
  const Scratch scratch;
  Restored restored(write_back(scratch.file("gone"), "old"));
  const Status wrong = restored.restore();
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->message.find(scratch.file("gone")), std::string::npos) << wrong->message;
  EXPECT_FALSE(restored.restore()) << "once is enough";
}

TEST(BenchRestored, RemovesATree) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.file("tree/a/b"));
  scratch.write("tree/a/b/file", "text");
  { const Restored restored({Undo::Kind::remove_tree, scratch.file("tree"), ""}); }
  EXPECT_FALSE(scratch.has("tree"));
}

// What is left to take back may be gone already: devices that somebody else has removed.
TEST(BenchRestored, WhatIsGoneNeedsNoStep) {
  Restored tree({Undo::Kind::remove_tree, "/no/such/tree", ""});
  EXPECT_FALSE(tree.restore());
  Restored device({Undo::Kind::remove_zram, "987654", ""});
  EXPECT_FALSE(device.restore());
}

// Also where nobody has asked for its status yet: init takes its time.
bool is_dead(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.substr(name_end, 3) == ") Z";
}

class BenchSupervised : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("setting", "old");
    scratch_.write("order", "");
  }

  void start(const char* what) {
    auto child = Child::start({{TUCK_BENCH_SUPERVISED, scratch_.path(), what}, {}}, true);
    ASSERT_TRUE(child) << child.error().message;
    started_.emplace(std::move(*child));
    std::string line;
    ASSERT_TRUE(started_->read_line(line, kPatience));
    ASSERT_EQ(std::sscanf(line.c_str(), "ready %d %d", &worker_, &sleeper_), 2) << line;
    EXPECT_NE(worker_, started_->pid()) << "the worker is a process of its own";
  }
  void start_and_wait() {
    start("wait");
    ASSERT_EQ(scratch_.read("setting"), "new");
    ASSERT_TRUE(scratch_.has("tree/in it/file"));
  }

  // The restorer is the last that has the pipe open.
  std::string output_until_all_are_gone() {
    std::string output;
    std::string line;
    while (started_->read_line(line, kPatience))
      output += line + "\n";
    return output + started_->rest();
  }
  static bool dies(pid_t pid) {
    for (int i = 0; i < 5000; ++i) {
      if (is_dead(pid)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  void expect_as_before() {
    EXPECT_EQ(scratch_.read("setting"), "old");
    EXPECT_FALSE(scratch_.has("tree"));
    EXPECT_EQ(scratch_.read("order"), "1") << "the latest step is to be taken back first";
    EXPECT_EQ(scratch_.read("past"), "later") << "what was taken back is not taken back again";
    EXPECT_TRUE(dies(worker_));
    EXPECT_TRUE(dies(sleeper_)) << "programs die with the worker";
  }

  const Scratch scratch_;
  std::optional<Child> started_;
  pid_t worker_ = -1;
  pid_t sleeper_ = -1;
};

TEST_F(BenchSupervised, KilledOutright) {
  start_and_wait();
  ASSERT_EQ(kill(started_->pid(), SIGKILL), 0);
  EXPECT_EQ(output_until_all_are_gone(), "");
  EXPECT_EQ(started_->reap(), 128 + SIGKILL);
  expect_as_before();
}

TEST_F(BenchSupervised, WorkerKilledOutright) {
  start_and_wait();
  ASSERT_EQ(kill(worker_, SIGKILL), 0);
  EXPECT_EQ(started_->reap(), 128 + SIGKILL);
  expect_as_before();
  EXPECT_EQ(output_until_all_are_gone(), "tuck-bench: ended by signal 9\n");
}

// By the time that the one which was started has ended, everything is as it was.
TEST_F(BenchSupervised, AskedToEnd) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    SetUp();
    start_and_wait();
    ASSERT_EQ(kill(started_->pid(), number), 0);
    EXPECT_EQ(started_->reap(), 128 + number);
    expect_as_before();
    EXPECT_EQ(output_until_all_are_gone(), "");
  }
}

TEST_F(BenchSupervised, LeavesWithoutTakingBack) {
  start("leave");
  EXPECT_EQ(started_->reap(), 3);
  expect_as_before();
}

TEST_F(BenchSupervised, TakesBackByItself) {
  start("return");
  EXPECT_EQ(started_->reap(), 4);
  expect_as_before();
}

}  // namespace
}  // namespace tuck::bench
