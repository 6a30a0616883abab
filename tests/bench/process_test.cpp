// Other programs: their output, their end, and how they fail.
#include "bench/frame/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "bench/frame/stopwatch.h"

namespace tuck::bench {
namespace {

constexpr double kPatience = 60;  // seconds; only a hang takes that long
constexpr uint64_t kMiB = 1u << 20;

Command shell(const std::string& script) {
  return {{"sh", "-c", script}, {}};
}

bool is_gone(pid_t pid) {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

TEST(BenchProcess, RunReturnsOutputAndErrors) {
  const auto output = run(shell("echo out; echo err >&2; printf tail"), kPatience);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "out\nerr\ntail");
}

TEST(BenchProcess, RunPassesArgumentsAndEnvironment) {
  const auto output =
      run({{"sh", "-c", "echo \"$1/$BENCH_TEST_WORD\"", "sh", "a b"}, {"BENCH_TEST_WORD=c d"}},
          kPatience);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "a b/c d\n");
}

TEST(BenchProcess, RunTakesMoreThanAPipeHolds) {
  const auto output = run(shell("yes 0123456789abcde | head -n 65536"), kPatience);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->size(), 65536u * 16);
}

TEST(BenchProcess, AStatusIsAnErrorWithTheEndOfTheOutput) {
  const auto output = run(shell("echo what went wrong; exit 3"), kPatience);
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("status 3"), std::string::npos) << output.error().message;
  EXPECT_NE(output.error().message.find("what went wrong"), std::string::npos)
      << output.error().message;
}

TEST(BenchProcess, ASignalIsAnErrorToo) {
  const auto output = run(shell("kill -9 $$"), kPatience);
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("status 137"), std::string::npos) << output.error().message;
}

TEST(BenchProcess, WhatIsNotInstalledIsSaidByName) {
  for (const char* name : {"no-such-program", "/no/such/program"}) {
    const auto output = run({{name}, {}}, kPatience);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().message, std::string(name) + " is not installed");
  }
}

TEST(BenchProcess, WhatTakesTooLongIsEnded) {
  const Stopwatch watch;
  const auto output = run(shell("echo begun; exec sleep 1000"), 0.2);
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("took longer than 0.2 s"), std::string::npos)
      << output.error().message;
  EXPECT_LT(watch.seconds(), kPatience);
}

TEST(BenchProcess, ProgramsAreFoundWhereOnlyRootLooks) {
  EXPECT_NE(program_path("sh"), "");
  EXPECT_EQ(program_path("no-such-program"), "");
  EXPECT_EQ(program_path("/bin/sh"), "/bin/sh");
  EXPECT_EQ(program_path("/etc/passwd"), "") << "not a program";
}

TEST(BenchChild, DiesWithStop) {
  auto child = Child::start({{"sleep", "1000"}, {}});
  ASSERT_TRUE(child) << child.error().message;
  const pid_t pid = child->pid();
  EXPECT_TRUE(child->runs());
  child->stop();
  EXPECT_TRUE(is_gone(pid));
  EXPECT_FALSE(child->runs());
  child->stop();
}

TEST(BenchChild, DiesWithItsObject) {
  pid_t pid = -1;
  {
    const auto child = Child::start({{"sleep", "1000"}, {}});
    ASSERT_TRUE(child) << child.error().message;
    pid = child->pid();
  }
  EXPECT_TRUE(is_gone(pid));
}

TEST(BenchChild, AnAssignmentStopsWhatWasThere) {
  auto child = Child::start({{"sleep", "1000"}, {}});
  ASSERT_TRUE(child) << child.error().message;
  const pid_t first = child->pid();
  auto other = Child::start({{"sleep", "1000"}, {}});
  ASSERT_TRUE(other) << other.error().message;
  const pid_t second = other->pid();
  {
    Child taken = std::move(*other);
    std::swap(*child, taken);
  }
  EXPECT_TRUE(is_gone(first));
  EXPECT_TRUE(child->runs());
  EXPECT_EQ(child->pid(), second);
}

TEST(BenchChild, SpeaksThroughPipes) {
  auto child = Child::start(shell("read word; echo \"got $word\"; printf rest; exit 4"), true);
  ASSERT_TRUE(child) << child.error().message;
  std::string line;
  EXPECT_FALSE(child->read_line(line, 0.05)) << "it waits for a word";
  ASSERT_TRUE(child->write("hello\n", 6));
  ASSERT_TRUE(child->read_line(line, kPatience));
  EXPECT_EQ(line, "got hello");
  EXPECT_FALSE(child->read_line(line, kPatience)) << "no line is left";
  EXPECT_EQ(child->rest(), "rest");
  EXPECT_EQ(child->reap(), 4);
  EXPECT_EQ(child->reap(), -1) << "it was reaped";
}

TEST(BenchChild, ASignalThatEndsItIsItsStatus) {
  auto child = Child::start(shell("kill -TERM $$"));
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(child->reap(), 128 + SIGTERM);
}

// Mapped here, because malloc may hand out memory that is resident already.
TEST(BenchProcess, AnonymousBytesGrowWithWhatIsTouched) {
  constexpr size_t kBytes = 8 * kMiB;
  const uint64_t before = anonymous_bytes();
  EXPECT_GT(before, 0u);
  void* const mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const uint64_t untouched = anonymous_bytes();
  std::memset(mapped, 1, kBytes);
  const uint64_t after = anonymous_bytes();
  munmap(mapped, kBytes);
  EXPECT_LT(untouched, before + kMiB);
  EXPECT_GE(after, untouched + kBytes);
  EXPECT_LT(after, untouched + kBytes + kMiB);
}

TEST(BenchProcess, AnonymousBytesOfNobodyAreNone) {
  EXPECT_EQ(anonymous_bytes(1 << 30), 0u);
}

}  // namespace
}  // namespace tuck::bench
