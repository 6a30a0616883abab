// Captures a process with known memory, and checks that every page is there that should be, byte
// for byte, and no other, and that the process goes on as it was.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "bench/corpus/corpus.h"
#include "tests/corpus/subject.h"

namespace tuck::corpus {
namespace {

std::string scratch_file(const char* name) {
  return (std::filesystem::temp_directory_path() /
          ("tuck-corpus-test." + std::to_string(getpid()) + "." + name))
      .string();
}

class Capture : public ::testing::Test {
 protected:
  void SetUp() override {
    int to[2];
    int from[2];
    ASSERT_EQ(pipe(to), 0);
    ASSERT_EQ(pipe(from), 0);
    const std::string mapped = scratch_file("mapped");
    pid_ = fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      close(to[1]);
      close(from[0]);
      execl(TUCK_CORPUS_SUBJECT, TUCK_CORPUS_SUBJECT, mapped.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
    char byte = 0;
    ASSERT_EQ(read(from_, &byte, 1), 1) << "the subject did not start";
    ASSERT_EQ(byte, 'r');
  }
  void TearDown() override {
    end_subject();
    close(to_);
    close(from_);
    std::filesystem::remove(file_);
  }

  void end_subject() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // The subject answers a byte only while it is not stopped.
  bool answers() const {
    char byte = 'x';
    return write(to_, &byte, 1) == 1 && read(from_, &byte, 1) == 1 && byte == 'x';
  }
  char state() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    std::getline(in, line);
    return line.at(line.rfind(')') + 2);
  }
  Result<CaptureReport, Error> capture_to_file(const CaptureOptions& options = {}) {
    auto out = PageFileWriter::create(file_);
    if (!out) return out.error();
    auto report = capture(pid_, *out, options);
    if (!report) return report;
    if (Status status = out->finish()) return *status;
    return report;
  }

  pid_t pid_ = 0;
  int to_ = -1;
  int from_ = -1;
  const std::string file_ = scratch_file("pages");
};

uint64_t word_of(std::span<const std::byte, kPageSize> page, uint32_t index) {
  uint64_t word = 0;
  std::memcpy(&word, page.data() + index * sizeof(word), sizeof(word));
  return word;
}

bool is_page(std::span<const std::byte, kPageSize> page, uint32_t mark, uint32_t number) {
  for (uint32_t i = 0; i < kPageSize / sizeof(uint64_t); ++i) {
    if (word_of(page, i) != subject_word(mark, number, i)) return false;
  }
  return true;
}

// How many pages of each mark a corpus has. Pages of a mark must be whole and in order.
std::map<uint32_t, uint32_t> count_marks(const PageFile& pages) {
  std::map<uint32_t, uint32_t> counts;
  for (uint64_t i = 0; i < pages.pages(); ++i) {
    for (uint32_t mark = kPrivateMark; mark <= kWrittenFileMark; ++mark) {
      const uint32_t number = mark == kWrittenFileMark ? uint32_t{kWrittenFilePage} : counts[mark];
      if (is_page(pages.page(i), mark, number)) ++counts[mark];
    }
  }
  return counts;
}

// Whether a page of anonymous memory that is read before it is written is the zero page that all
// processes share, or, as some kernels have it, one that is exclusively this process's (bit 56 of
// its word in /proc/self/pagemap).
bool reading_maps_the_zero_page() {
  void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(page, MAP_FAILED);
  EXPECT_EQ(*static_cast<volatile char*>(page), 0);
  uint64_t word = 0;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(page) / kPageSize * sizeof(word));
  EXPECT_EQ(pread(pagemap, &word, sizeof(word), at), ssize_t{sizeof(word)});
  close(pagemap);
  munmap(page, kPageSize);
  EXPECT_NE(word >> 63, 0u) << "the page is not present";
  return (word >> 56 & 1) == 0;
}

void check_pages(const std::string& file) {
  auto pages = PageFile::open(file);
  ASSERT_TRUE(pages) << pages.error().message;
  auto counts = count_marks(*pages);
  EXPECT_EQ(counts[kPrivateMark], uint32_t{kPrivatePages});
  EXPECT_EQ(counts[kHiddenMark], uint32_t{kHiddenPages});
  EXPECT_EQ(counts[kWrittenFileMark], 1u);
  EXPECT_EQ(counts[kSharedMark], 0u);
  EXPECT_EQ(counts[kFileMark], 0u);
  // Pages that were only read are the process's own where the kernel gives it some for them.
  const uint64_t zero = measure(pages->bytes()).zero;
  if (reading_maps_the_zero_page()) {
    EXPECT_LT(zero, uint64_t{kReadOnlyTouchedPages});
  } else {
    EXPECT_GE(zero, uint64_t{kReadOnlyTouchedPages});
  }
}

TEST_F(Capture, CopiesPrivateAnonymousPagesAndNothingElse) {
  auto report = capture_to_file();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->unreadable, 0u);
  EXPECT_EQ(report->pages * kPageSize, std::filesystem::file_size(file_));
  EXPECT_TRUE(answers());
  check_pages(file_);
}

TEST_F(Capture, WithoutStopping) {
  auto report = capture_to_file({.stop = false});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(answers());
  check_pages(file_);
}

TEST_F(Capture, LeavesAStoppedProcessStopped) {
  kill(pid_, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  ASSERT_TRUE(WIFSTOPPED(status));
  auto report = capture_to_file();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(state(), 'T');
  kill(pid_, SIGCONT);
  EXPECT_TRUE(answers());
}

TEST_F(Capture, ContinuesTheProcessWhenCancelled) {
  const std::atomic<bool> cancelled{true};
  auto report = capture_to_file({.cancelled = &cancelled});
  ASSERT_FALSE(report);
  EXPECT_TRUE(answers());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(Capture, ContinuesTheProcessWhenTheFileCannotBeWritten) {
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 65536, old.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto report = capture_to_file();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("cannot write"), std::string::npos)
      << report.error().message;
  EXPECT_TRUE(answers());
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_FALSE(std::filesystem::exists(file_ + ".part"));
}

TEST_F(Capture, SaysWhenThereIsNoSuchProcess) {
  const pid_t pid = pid_;
  end_subject();
  auto out = PageFileWriter::create(file_);
  ASSERT_TRUE(out);
  auto report = capture(pid, *out);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "there is no process " + std::to_string(pid));
}

}  // namespace
}  // namespace tuck::corpus
