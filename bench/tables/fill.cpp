#include "bench/tables/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "bench/tables/codec_pair.h"

namespace tuck::bench {

namespace {

constexpr uint64_t kPayload = 512u << 20;
constexpr double kQuickSeconds = 0.5;
constexpr size_t kZramRequest = 1u << 20;
constexpr const char* kCodec = "lz4";

// Bytes one behind the other into a file.
class FileWriter {
 public:
  explicit FileWriter(std::string path)
      : path_(std::move(path)), stream_(path_, std::ios::binary) {}
  void add(const void* data, size_t bytes) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }
  Status finish() {
    stream_.close();
    if (stream_) return {};
    return Error{Errc::no_space, "cannot write " + path_};
  }

 private:
  std::string path_;
  std::ofstream stream_;
};

// What each page compresses to; the sum.
Result<uint64_t, Error> write_sizes(const PageList& pages, const std::string& path) {
  auto codec = bare_codec(kCodec);
  if (!codec) return codec.error();
  const BareStore store(std::move(*codec), pages);
  FileWriter file(path);
  for (size_t i = 0; i < pages.size(); ++i) {
    const uint32_t bytes = store.bytes_of(i);
    file.add(&bytes, sizeof bytes);
  }
  if (Status wrong = file.finish()) return *wrong;
  return store.bytes();
}

Status write_pages(const PageList& pages, const std::string& path) {
  FileWriter file(path);
  for (const std::byte* page : pages)
    file.add(page, kPageSize);
  return file.finish();
}

}  // namespace

std::vector<NamedHeap> heaps(bool peers) {
  std::vector<NamedHeap> all{{kTuck, {"", true, ""}}, {kTuckLz4, {"", true, kCodec}}};
  if (!peers) return all;
  all.push_back({"glibc", {}});
  all.push_back({"jemalloc", {"libjemalloc.so.2", false, ""}});
  all.push_back({"mimalloc", {"libmimalloc.so.2", false, ""}});
  all.push_back({"tcmalloc", {"libtcmalloc_minimal.so.4", false, ""}});
  return all;
}

Result<FillContent, Error> FillContent::create(Context& context) {
  const PageList pages = context.pages().pages_to_compress();
  const size_t bytes = pages.size() * kPageSize;
  if (bytes == 0)
    return Error{Errc::invalid, "all pages are same-filled: there is nothing to compress"};
  auto folder = ScratchFolder::create(bytes + pages.size() * sizeof(uint32_t));
  if (!folder) return folder.error();
  HeapContent files{folder->file("pages"), folder->file("sizes"), 1};
  if (Status wrong = write_pages(pages, files.pages_file)) return *wrong;
  const auto payload = write_sizes(pages, files.sizes_file);
  if (!payload) return payload.error();
  const bool whole = context.options().seconds >= kQuickSeconds;
  if (whole) files.copies = static_cast<unsigned>((kPayload + *payload - 1) / *payload);
  auto mapped = MappedFile::open(files.pages_file);
  if (!mapped) return mapped.error();
  context.report().note(
      fmt::format("{} MB of pages, same-filled ones left out, {} times: {} MB compressed by lz4",
                  bytes / 1'000'000, files.copies, *payload * files.copies / 1'000'000));
  if (!whole) context.report().warn("a quick run (--seconds): too little memory for a claim");
  return FillContent(std::move(*folder), std::move(files), std::move(*mapped), whole);
}

Result<ZramDevice, Error> filled_zram(const FillContent& content) {
  auto device = ZramDevice::create(kCodec, content.bytes());
  if (!device) return device;
  for (uint64_t at = 0; at < content.bytes();) {
    const size_t inside = at % content.pages().size();
    const size_t bytes = std::min(kZramRequest, content.pages().size() - inside);
    if (Status wrong = device->write(at, content.pages().subspan(inside, bytes))) return *wrong;
    at += bytes;
  }
  return device;
}

void add_memory(Figures& figures, uint64_t payload, uint64_t resident, const std::string& prefix) {
  figures[prefix + "payload_mb"] = static_cast<double>(payload) / 1e6;
  figures[prefix + "resident_mb"] = static_cast<double>(resident) / 1e6;
  if (payload > 0) {
    figures[prefix + "resident_over_payload"] =
        static_cast<double>(resident) / static_cast<double>(payload);
  }
}

std::string summary_name(const std::string& contestant) {
  std::string name = contestant;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + "_resident_over_payload";
}

}  // namespace tuck::bench
