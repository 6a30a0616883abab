// nbd: tuck's server beside other memory disks, with fio as the client of all of them.
//
// Each turn starts its server anew and fills the disk with the pages, so that what is read is real;
// what fio writes are its own buffers (peers/fio.cpp). Reads come before writes. One connection.
#include <fmt/format.h>

#include <fstream>
#include <set>

#include "bench/frame/frame.h"
#include "bench/peers/fio.h"
#include "bench/peers/nbd_server.h"

namespace tuck::bench {

namespace {

constexpr FioJob kJobs[] = {{"randread", "4k", 1},  {"randread", "4k", 32},  {"read", "64k", 8},
                            {"randwrite", "4k", 1}, {"randwrite", "4k", 32}, {"write", "64k", 8}};

constexpr const char* kLz4 = "tuck lz4";
constexpr const char* kNbdkit = "nbdkit memory";
constexpr const char* kNbdkitZstd = "nbdkit memory zstd";
constexpr const char* kNull = "null";
constexpr const char* kMemory = "memory_mb";
constexpr const char* kFill = "fill_mb_s";

struct Server {
  std::string name;
  NbdDisk disk;
};

// codec: that tuck takes when none is named.
std::vector<Server> servers(const std::string& codec, uint64_t bytes, bool peers) {
  std::vector<Server> all;
  for (const std::string& name : std::set<std::string>{"lz4", "zstd:-1", codec})
    all.push_back({"tuck " + name, {NbdKind::tuck, name, bytes}});
  if (!peers) return all;
  all.push_back({kNbdkit, {NbdKind::nbdkit_memory, "", bytes}});
  all.push_back({kNbdkitZstd, {NbdKind::nbdkit_memory_zstd, "", bytes}});
  all.push_back({"qemu-nbd tmpfs", {NbdKind::qemu_nbd, "", bytes}});
  all.push_back({kNull, {NbdKind::null, "", bytes}});
  return all;
}

// Of a job's figure: "randread 4k 32 iops".
std::string figure(const FioJob& job, const char* what) {
  return fmt::format("{} {} {} {}", job.rw, job.bs, job.depth, what);
}

Result<Figures, Error> turn(const Server& server, const ScratchFolder& folder,
                            const std::string& pages_file, double seconds) {
  auto running = NbdServer::start(server.disk, folder);
  if (!running) return running.error();
  const auto filled = running->fill(pages_file);
  if (!filled) return filled.error();
  Figures figures;
  figures[kFill] = static_cast<double>(server.disk.bytes) / 1e6 / *filled;
  if (server.disk.kind != NbdKind::null)
    figures[kMemory] = static_cast<double>(running->memory_bytes()) / 1e6;
  for (const FioJob& job : kJobs) {
    const auto done = run_fio(job, running->uri(), server.disk.bytes, seconds);
    if (!done) return done.error();
    figures[figure(job, "iops")] = done->iops;
    figures[figure(job, "mb_s")] = done->mb_s;
    figures[figure(job, "p50_us")] = done->p50_us;
    figures[figure(job, "p99_us")] = done->p99_us;
  }
  return figures;
}

Status write_pages(const NamedPages& pages, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(pages.bytes.data()),
             static_cast<std::streamsize>(pages.bytes.size()));
  file.close();
  if (file) return {};
  return Error{Errc::no_space, fmt::format("cannot write {} MB of pages to {}",
                                           pages.bytes.size() / 1'000'000, path)};
}

void add_rows(Report& report, const Measured& measured, const Server& server) {
  if (!measured.has(server.name)) return;
  for (const FioJob& job : kJobs) {
    Row row;
    row.add("server", server.name).add("rw", job.rw).add("bs", job.bs);
    row.add("depth", int64_t{job.depth});
    row.add_with_spread("iops", measured.get(server.name, figure(job, "iops")));
    for (const char* what : {"mb_s", "p50_us", "p99_us"})
      row.add(what, measured.get(server.name, figure(job, what)));
    for (const char* what : {kMemory, kFill})
      row.add(what, measured.get(server.name, what));
    report.add(std::move(row));
  }
}

void summarize(Report& report, const Measured& measured, const std::string& by_default) {
  const std::string write_32 = figure(kJobs[4], "iops");
  const std::string read_32 = figure(kJobs[1], "iops");
  const std::string latency = figure(kJobs[0], "p50_us");
  const auto add = [&](const char* name, const std::string& ours, const char* theirs,
                       const std::string& what, std::optional<Target> target = {}) {
    report.summarize(name, measured.ratio(ours, theirs, what), target);
  };
  add("randwrite_32_over_nbdkit", kLz4, kNbdkit, write_32, at_least(1.0));
  add("randread_32_over_nbdkit", kLz4, kNbdkit, read_32, at_least(1.0));
  add("randwrite_32_over_nbdkit_zstd", by_default, kNbdkitZstd, write_32, at_least(8));
  add("randread_32_over_nbdkit_zstd", by_default, kNbdkitZstd, read_32, at_least(1.5));
  add("randread_1_latency_over_nbdkit", kLz4, kNbdkit, latency, at_most(0.6));
  add("memory_over_nbdkit_zstd", by_default, kNbdkitZstd, kMemory);
  add("randwrite_32_over_null", kLz4, kNull, write_32);
  add("randread_32_over_null", kLz4, kNull, read_32);
  add("randread_1_latency_over_null", kLz4, kNull, latency);
}

Status run(Context& context) {
  const NamedPages& pages = context.pages().all();
  // The pages, and as much again for the disk of the peer that keeps it in a file.
  auto folder = ScratchFolder::create(2 * pages.bytes.size());
  if (!folder) return folder.error();
  const std::string pages_file = folder->file("pages");
  if (Status wrong = write_pages(pages, pages_file)) return wrong;
  const auto codec = default_codec(*folder);
  if (!codec) return codec.error();
  const auto all = servers(*codec, pages.bytes.size(), context.options().peers);
  std::vector<Contestant> contestants;
  contestants.reserve(all.size());
  for (const Server& server : all) {
    contestants.push_back({server.name,
                           [&, seconds = context.options().seconds] {
                             return turn(server, *folder, pages_file, seconds);
                           },
                           server.disk.kind == NbdKind::tuck});
  }
  const auto measured = run_rounds(context, contestants);
  if (!measured) return measured.error();
  for (const Server& server : all)
    add_rows(context.report(), *measured, server);
  summarize(context.report(), *measured, "tuck " + *codec);
  context.report().note("one connection; the disk is filled with the pages before each turn");
  context.report().note("reads are of real pages, writes of fio's buffers (60 percent zeroes)");
  context.report().note(
      "memory_mb: what the filled disk holds beyond the empty one; fill_mb_s: by nbdcopy");
  return {};
}

const TableEntry entry{"nbd", "tuck's server beside nbdkit and qemu-nbd, driven by fio", run};

}  // namespace

}  // namespace tuck::bench
