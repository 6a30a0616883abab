#include "bench/peers/heap.h"

#include <fmt/format.h>
#include <glob.h>

#include <charconv>
#include <filesystem>
#include <fstream>

namespace tuck::bench {

namespace {

constexpr double kAnswerSeconds = 300;  // filling with a slow codec takes a while

// Where a library may be, the first that has it; empty: nowhere.
std::string library_path(const std::string& name) {
  std::string path;
  for (const char* folder :
       {"/usr/lib/*-linux-gnu*/", "/usr/lib64/", "/usr/lib/", "/usr/local/lib/"}) {
    glob_t found{};
    if (glob((folder + name).c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0)
      path = found.gl_pathv[0];
    globfree(&found);
    if (!path.empty()) break;
  }
  return path;
}

bool has_loaded(pid_t pid, const std::string& library) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  const std::string file = std::filesystem::weakly_canonical(library).filename();
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("/" + file)) return true;
  }
  return false;
}

}  // namespace

Result<HeapSubject, Error> HeapSubject::start(const Heap& heap, const HeapContent& content) {
  std::string library;
  if (!heap.library.empty()) {
    library = library_path(heap.library);
    if (library.empty()) return Error{Errc::invalid, heap.library + " is not installed"};
  }
  Command command{
      {own_program("tuck-heap-subject"), heap.is_engine ? "engine" : "malloc",
       heap.is_engine ? content.pages_file : content.sizes_file, std::to_string(content.copies)},
      {}};
  if (!heap.codec.empty()) command.words.push_back(heap.codec);
  if (!library.empty()) command.environment.push_back("LD_PRELOAD=" + library);
  auto child = Child::start(command, true);
  if (!child) return child.error();
  HeapSubject subject(std::move(*child));
  const auto ready = subject.answer_to("", "ready");
  if (!ready) return ready.error();
  if (!library.empty() && !has_loaded(subject.child_.pid(), library))
    return Error{Errc::invalid, library + " was not loaded"};
  subject.empty_bytes_ = anonymous_bytes(subject.child_.pid());
  return subject;
}

Result<uint64_t, Error> HeapSubject::fill() {
  return answer_to("fill\n", "payload");
}

Result<uint64_t, Error> HeapSubject::free_half(uint64_t seed) {
  return answer_to(fmt::format("free {}\n", seed), "payload");
}

uint64_t HeapSubject::resident_bytes() const {
  const uint64_t now = anonymous_bytes(child_.pid());
  return now > empty_bytes_ ? now - empty_bytes_ : 0;
}

// The number behind the word that the answer begins with.
Result<uint64_t, Error> HeapSubject::answer_to(const std::string& command,
                                               const std::string& word) {
  std::string line;
  if (!child_.write(command.data(), command.size()) || !child_.read_line(line, kAnswerSeconds)) {
    return Error{Errc::invalid,
                 fmt::format("the process with the heap ended or hung: {}",
                             child_.rest().empty() ? "without a word" : child_.rest())};
  }
  uint64_t number = 0;
  const char* const begin = line.data() + std::min(line.size(), word.size() + 1);
  const char* const end = line.data() + line.size();
  if (!line.starts_with(word + " ") || std::from_chars(begin, end, number).ptr != end)
    return Error{Errc::invalid, "the process with the heap says: " + line};
  return number;
}

}  // namespace tuck::bench
