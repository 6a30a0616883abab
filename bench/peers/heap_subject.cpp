// tuck-heap-subject malloc SIZES_FILE COPIES
// tuck-heap-subject engine PAGES_FILE COPIES [CODEC]
//
// The process that HeapSubject (bench/peers/heap.h) drives, a line a command:
//
//   fill       allocates and fills, or stores, all objects of all copies
//   free SEED  frees those that is_freed(); one call an object, as a program and a swap device do
//   it
//
// Each is answered with "payload BYTES", the start with "ready 0"; any failure with a line that
// says so, and the end. The table of the objects is there before "ready", so that it does not
// count.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/base.h"
#include "bench/frame/mapped_file.h"
#include "bench/peers/heap.h"
#include "engine/engine.h"

namespace tuck::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

class Subject {
 public:
  virtual ~Subject() = default;
  // Return the payload in bytes.
  virtual Result<uint64_t, Error> fill() = 0;
  virtual Result<uint64_t, Error> free_half(uint64_t seed) = 0;
};

class MallocSubject : public Subject {
 public:
  static Result<std::unique_ptr<Subject>, Error> create(std::span<const std::byte> sizes,
                                                        uint64_t copies) {
    const uint64_t objects = sizes.size() / sizeof(uint32_t) * copies;
    void* const table = mmap(nullptr, objects * sizeof(void*), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED) return Error{Errc::no_space, "no memory for the objects' table"};
    return std::unique_ptr<Subject>(
        new MallocSubject(sizes, std::span(static_cast<void**>(table), objects)));
  }

  Result<uint64_t, Error> fill() override {
    for (uint64_t i = 0; i < objects_.size(); ++i) {
      objects_[i] = std::malloc(size_of(i));
      if (objects_[i] == nullptr) return Error{Errc::no_space, "malloc failed"};
      // Never the zeroes that a kernel may keep only once.
      std::memset(objects_[i], static_cast<int>(i % 255 + 1), size_of(i));
      payload_ += size_of(i);
    }
    return payload_;
  }
  Result<uint64_t, Error> free_half(uint64_t seed) override {
    for (uint64_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i] == nullptr || !is_freed(seed, i)) continue;
      std::free(objects_[i]);
      objects_[i] = nullptr;
      payload_ -= size_of(i);
    }
    return payload_;
  }

 private:
  MallocSubject(std::span<const std::byte> sizes, std::span<void*> objects)
      : sizes_(sizes), objects_(objects) {}
  uint32_t size_of(uint64_t object) const noexcept {
    uint32_t size = 0;
    std::memcpy(&size, sizes_.data() + object * sizeof size % sizes_.size(), sizeof size);
    return size;
  }

  std::span<const std::byte> sizes_;
  std::span<void*> objects_;
  uint64_t payload_ = 0;
};

class EngineSubject : public Subject {
 public:
  EngineSubject(std::span<const std::byte> pages, uint64_t copies, engine::CodecSetting codec)
      : pages_(pages), codec_(codec), slots_(pages.size() / kPageSize * copies) {}

  Result<uint64_t, Error> fill() override {
    auto made = engine::Engine::create({});
    if (!made) return made.error();
    engine_ = std::move(*made);
    const auto area = engine_->add_area({.name = "bench", .slots = slots_, .codec = codec_});
    if (!area) return area.error();
    area_ = *area;
    for (uint32_t i = 0; i < slots_; ++i) {
      const std::byte* const page = pages_.data() + uint64_t{i} * kPageSize % pages_.size();
      if (engine_->store(area_, SlotIndex{i}, 1, page).code != Errc::ok)
        return Error{Errc::no_space, "the engine refused a page"};
    }
    return payload();
  }
  Result<uint64_t, Error> free_half(uint64_t seed) override {
    if (engine_ == nullptr) return Error{Errc::invalid, "free before fill"};
    for (uint32_t i = 0; i < slots_; ++i) {
      if (is_freed(seed, i) && engine_->free(area_, SlotIndex{i}, 1).code != Errc::ok)
        return Error{Errc::invalid, "the engine did not free a page"};
    }
    return payload();
  }

 private:
  uint64_t payload() const { return engine_->stats().content.bytes_compressed; }

  std::span<const std::byte> pages_;
  engine::CodecSetting codec_;
  uint64_t slots_;
  std::unique_ptr<engine::Engine> engine_;
  AreaId area_{};
};

Result<std::unique_ptr<Subject>, Error> make_subject(std::span<char* const> words,
                                                     std::span<const std::byte> file) {
  const std::string_view kind = words[0];
  const std::string_view copies_text = words[2];
  uint64_t copies = 0;
  std::from_chars(copies_text.data(), copies_text.data() + copies_text.size(), copies);
  if (copies == 0) return Error{Errc::invalid, fmt::format("{} is no number of copies", words[2])};
  if (kind == "malloc") return MallocSubject::create(file, copies);
  if (kind != "engine") return Error{Errc::invalid, "no such heap"};
  engine::CodecSetting codec;
  if (words.size() > 3) {
    const auto setting = engine::parse_codec(words[3]);
    if (!setting) return setting.error();
    codec = *setting;
  }
  return std::unique_ptr<Subject>(new EngineSubject(file, copies, codec));
}

Result<uint64_t, Error> obey(Subject& subject, std::string_view command) {
  if (command == "fill\n") return subject.fill();
  uint64_t seed = 0;
  if (command.starts_with("free ") &&
      std::from_chars(command.data() + 5, command.data() + command.size(), seed).ec == std::errc())
    return subject.free_half(seed);
  return Error{Errc::invalid, "no such command"};
}

bool say(const std::string& text) {
  return write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

int fail(const Error& error) {
  say(error.message + "\n");
  return kExitFailed;
}

int heap_subject_main(std::span<char* const> words) {
  const auto file = MappedFile::open(words[1]);
  if (!file) return fail(file.error());
  auto subject = make_subject(words, file->bytes());
  if (!subject) return fail(subject.error());
  say("ready 0\n");
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const auto payload = obey(**subject, line);
    if (!payload) return fail(payload.error());
    say(fmt::format("payload {}\n", *payload));
  }
  return 0;
}

}  // namespace
}  // namespace tuck::bench

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    std::fputs("usage: tuck-heap-subject malloc|engine FILE COPIES [CODEC]\n", stderr);
    return tuck::bench::kExitUsage;
  }
  return tuck::bench::heap_subject_main(std::span(argv + 1, static_cast<size_t>(argc - 1)));
}
