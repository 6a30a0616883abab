// A bench that changes a folder instead of its machine, for supervisor_test.cpp.
//
//   bench_supervised FOLDER wait    says "ready WORKER CHILD" and waits to be killed
//   bench_supervised FOLDER leave   ends with status 3, without taking anything back
//   bench_supervised FOLDER return  takes everything back and ends with status 4
//
// In FOLDER are: `setting`, a file with "old"; `order`, an empty file.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/frame/process.h"
#include "bench/frame/supervisor.h"

namespace tuck::bench {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

int work(const std::string& folder, const std::string& what) {
  const std::string order = folder + "/order";
  // Taken back last, so that its word stays.
  const Restored last({Undo::Kind::write_file, order, "1"});
  const Restored first({Undo::Kind::write_file, order, "2"});
  const Restored setting({Undo::Kind::write_file, folder + "/setting", "old"});
  write(folder + "/setting", "new");
  const Restored tree({Undo::Kind::remove_tree, folder + "/tree", ""});
  std::filesystem::create_directories(folder + "/tree/in it");
  write(folder + "/tree/in it/file", "text");
  {
    const Restored past({Undo::Kind::write_file, folder + "/past", "again"});
    write(folder + "/past", "first");
  }
  write(folder + "/past", "later");
  const auto child = Child::start({{"sleep", "1000"}, {}});
  if (!child) return 1;
  fmt::print("ready {} {}\n", getpid(), child->pid());
  std::fflush(stdout);
  if (what == "leave") _exit(3);
  while (what == "wait")
    pause();
  return 4;
}

}  // namespace
}  // namespace tuck::bench

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (const tuck::Status wrong = tuck::bench::supervise()) {
    fmt::print(stderr, "{}\n", wrong->message);
    return 1;
  }
  return tuck::bench::work(argv[1], argv[2]);
}
