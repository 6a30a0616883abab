#include "bench/frame/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/frame/process.h"

namespace tuck::bench {

namespace {

namespace fs = std::filesystem;
using corpus::PageFile;

constexpr double kCorpusSeconds = 600;  // what tools/corpus may take; measured: 15 s
constexpr uint64_t kSyntheticPages = 65536;
constexpr uint64_t kSyntheticSeed = 1;

// The checkout that this program was built in: the nearest folder above it with a tools/corpus.
fs::path checkout() {
  std::error_code ignored;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", ignored); folder.has_relative_path();) {
    folder = folder.parent_path();
    if (fs::exists(folder / "tools/corpus", ignored)) return folder;
  }
  return {};
}

// Where corpora are kept between runs.
fs::path cache_folder() {
  const fs::path root = checkout();
  if (!root.empty()) return root / "build/corpus";
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "tuck/corpus";
  const char* home = std::getenv("HOME");
  return home == nullptr ? fs::path() : fs::path(home) / ".cache/tuck/corpus";
}

std::vector<std::string> page_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".pages") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The cached corpora, made where there are none; and why there are none after all.
std::vector<std::string> cached_files(std::string& why) {
  const fs::path folder = cache_folder();
  std::vector<std::string> files = page_files(folder);
  if (!files.empty()) return files;
  const fs::path tool = checkout() / "tools/corpus";
  if (folder.empty() || !fs::exists(tool)) {
    why = "there is no tools/corpus above this program; --corpus FILE names pages";
    return {};
  }
  fmt::print(stderr, "tuck-bench: capturing real pages into {} (once)\n", folder.string());
  const auto made = run({{tool, folder}, {}}, kCorpusSeconds);
  files = page_files(folder);
  if (files.empty()) why = made ? "tools/corpus captured none" : made.error().message;
  return files;
}

std::string stem(const std::string& path) {
  return fs::path(path).stem();
}

}  // namespace

void Pages::use(const std::vector<std::string>& names, const std::vector<size_t>& bytes) {
  size_t at = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    corpora_.push_back({names[i], std::span<const std::byte>(memory_).subspan(at, bytes[i])});
    at += bytes[i];
  }
  all_ = {"all", memory_};
  for (const NamedPages& corpus : corpora_)
    origin_ += fmt::format("{}{} ({} MB)", origin_.empty() ? "" : ", ", corpus.name,
                           (corpus.bytes.size() + 500'000) / 1'000'000);
}

Result<Pages, Error> Pages::get(const PagesWanted& wanted) {
  Pages pages;
  std::string why = "asked for";
  const std::vector<std::string> files = !wanted.files.empty() ? wanted.files
                                         : wanted.synthetic    ? std::vector<std::string>()
                                                               : cached_files(why);
  std::vector<std::string> names;
  std::vector<size_t> bytes;
  for (const std::string& path : files) {
    const auto file = PageFile::open(path);
    if (!file) return file.error();
    pages.memory_.insert(pages.memory_.end(), file->bytes().begin(), file->bytes().end());
    names.push_back(stem(path));
    bytes.push_back(file->bytes().size());
  }
  if (files.empty()) {
    pages.synthetic_ = true;
    pages.memory_.resize(kSyntheticPages * kPageSize);
    const corpus::SyntheticPages generator(kSyntheticSeed);
    for (uint64_t i = 0; i < kSyntheticPages; ++i) {
      generator.fill(
          i, std::span<std::byte, kPageSize>(pages.memory_.data() + i * kPageSize, kPageSize));
    }
    names = {"SYNTHETIC"};
    bytes = {pages.memory_.size()};
  }
  pages.use(names, bytes);
  if (pages.synthetic_) pages.origin_ += fmt::format(", generated: {}", why);
  return pages;
}

std::vector<const std::byte*> Pages::pages_to_compress() const {
  std::vector<const std::byte*> pages;
  pages.reserve(all_.pages());
  for (uint64_t i = 0; i < all_.pages(); ++i) {
    const std::byte* const page = all_.page(i);
    if (!corpus::is_same_filled(std::span<const std::byte, kPageSize>(page, kPageSize)))
      pages.push_back(page);
  }
  return pages;
}

}  // namespace tuck::bench
