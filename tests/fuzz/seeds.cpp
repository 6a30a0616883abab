#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "frontends/nbd/protocol.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/request_stream.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/machine.h"
#include "tests/support/seed.h"

namespace tuck::test {

namespace {

using nbd::Option;

std::string bytes_of(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values)
    text += static_cast<char>(value);
  return text;
}

// Conversations of every kind that a client has before it transmits.
std::vector<FuzzSeed> conversations() {
  const std::string hello = client_flags();
  const std::string structured = option(Option::structured_reply);
  const auto context = [](Option which, const std::vector<std::string>& queries) {
    return option(which, meta_data("disk", queries));
  };
  return {
      {"go", hello + option(Option::go, info_data(""))},
      {"go_by_name", hello + option(Option::go, info_data("disk", {0, 1, 2, 3, 4}))},
      {"go_many_infos", hello + option(Option::go, info_data("0", std::vector<uint16_t>(200, 3)))},
      {"go_unknown", hello + option(Option::go, info_data(std::string(3000, 'n')))},
      {"go_name_too_long", hello + option(Option::go, be32(0xffffffff) + be16(0))},
      {"go_infos_missing", hello + option(Option::go, length_and_text("") + be16(500))},
      {"info_then_go", hello + option(Option::info, info_data("read-only", {3})) +
                           option(Option::go, info_data("read-only", {3}))},
      {"export_name", hello + option(Option::export_name, "disk")},
      {"export_name_zeroes",
       client_flags(nbd::kClientFixedNewstyle) + option(Option::export_name, "read-only")},
      {"export_name_unknown", hello + option(Option::export_name, "nothing")},
      {"list", hello + option(Option::list) + option(Option::list, "x") + option(Option::abort)},
      {"structured", hello + structured + structured + option(Option::go, info_data("disk"))},
      {"contexts", hello + structured + context(Option::list_meta_context, {"base:", "x:y"}) +
                       context(Option::set_meta_context, {"base:allocation", "base:allocation"}) +
                       option(Option::go, info_data("disk"))},
      {"contexts_too_early", hello + context(Option::set_meta_context, {"base:allocation"})},
      {"contexts_cut",
       hello + structured +
           option(Option::set_meta_context, length_and_text("disk") + be32(3) + be32(9))},
      {"contexts_of_another",
       hello + structured +
           option(Option::set_meta_context, meta_data("read-only", {"base:allocation"})) +
           option(Option::go, info_data("disk"))},
      {"tls", hello + option(Option::start_tls) + option(Option::start_tls, "data")},
      {"unknown_options", hello + option(77, std::string(5000, 'u')) +
                              option(Option::extended_headers) + option(Option::peek_export) +
                              option(Option::abort, "bye")},
      {"too_long", hello + option(Option::list, "", 0xffffffff)},
      {"bad_magic", hello + "IHAVEOPTX" + option(Option::list)},
      {"bad_flags", client_flags(0xffffffff) + option(Option::list)},
      {"old_flags", client_flags(0) + option(Option::list) + option(Option::export_name, "disk")},
      {"nothing", ""},
  };
}

std::string write(uint64_t offset, uint32_t length) {
  return header(1, 0, offset, length) + std::string(length, 'w');
}

// Requests as they travel.
std::vector<FuzzSeed> request_streams() {
  const std::string goodbye = header(2, 0, 0, 0);
  std::string queue;
  for (uint32_t i = 0; i < 20; ++i)
    queue += write(i * 4096u, 100);
  return {
      {"write_read", write(4000, 5000) + header(0, 0, 4000, 5000) + goodbye},
      {"overtaking", queue + header(0, 0, 200'000, 4096) + header(0, 0, 4096, 4096)},
      {"zeroes_and_trim", write(0, 9000) + header(6, 0, 100, 5000, nbd::kCommandNoHole) +
                              header(4, 0, 0, 8192) + header(0, 0, 0, 9000)},
      {"status", write(0, 4096) + header(7, 0, 0, 300'000) +
                     header(7, 0, 0, 300'000, nbd::kCommandReqOne) + header(7, 0, 0, 0)},
      {"long_reads", header(0, 0, 0, 320u << 10) + header(0, 0, 0, 300'000, nbd::kCommandDf) +
                         header(3, 0, 0, 0)},
      {"refused", write(kFuzzDiskBytes - 1, 2) + header(0, 0, UINT64_MAX, 1) + header(99, 0, 0, 0) +
                      header(0, 0, 0, 1, 0xffff) + header(3, 0, 1, 0) + header(0, 0, 0, 64u << 20)},
      {"nothing_at_all", write(0, 0) + header(0, 0, 0, 0) + header(4, 0, 0, 0) +
                             header(6, 0, 0, 0) + header(5, 0, 0, 0)},
      {"too_long", header(1, 0, 0, 0xffffffff) + "and so on"},
      {"payload_missing", header(1, 0, 100, 5000) + std::string(4000, 'x')},
      {"bad_magic", write(0, 10) + std::string(28, 'm') + header(0, 0, 0, 10)},
      {"trim_everything", write(kFuzzDiskBytes - 50, 50) + header(4, 0, 0, kFuzzDiskBytes)},
  };
}

std::string short_forms(uint64_t of) {
  Random random(of);
  std::string text;
  for (uint64_t i = random.between(5, 60) * kShortRequestBytes; i != 0; --i)
    text += static_cast<char>(random.next() >> 23);
  return text;
}

void add_short_forms(std::vector<FuzzSeed>& seeds, size_t count, uint8_t first_mask) {
  for (uint64_t i = 0; i < count; ++i) {
    Random random(mix(i, first_mask));
    std::string controls;
    controls += static_cast<char>(random.next() & first_mask);
    controls += static_cast<char>(random.one_in(3) ? 0 : random.next());
    controls += static_cast<char>(random.one_in(3) ? 0 : random.next());
    seeds.push_back({"short_" + std::to_string(i), controls + short_forms(i)});
  }
}

int nibble(int c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Everything that is not a hexadecimal digit is skipped; a line that begins with # is a comment.
std::string from_hex(std::istream& in) {
  std::string text;
  int high = -1;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    for (const char c : line) {
      const int digit = nibble(c);
      if (digit < 0) continue;
      if (high >= 0) text += static_cast<char>(high * 16 + digit);
      high = high >= 0 ? -1 : digit;
    }
  }
  return text;
}

// findings/TARGET-NAME.hex
void add_findings(std::vector<FuzzSeed>& seeds, std::string_view target) {
  const std::string prefix = std::string(target) + "-";
  std::error_code none_yet;
  for (const auto& entry : std::filesystem::directory_iterator(TUCK_FUZZ_FINDINGS, none_yet)) {
    const std::string name = entry.path().stem().string();
    if (!name.starts_with(prefix)) continue;
    std::ifstream file(entry.path());
    seeds.push_back({name, from_hex(file)});
  }
}

}  // namespace

std::vector<FuzzSeed> fuzz_seeds(std::string_view target) {
  std::vector<FuzzSeed> seeds;
  const std::string go = client_flags() + option(Option::go, info_data("disk"));
  if (target == "negotiation") {
    for (const FuzzSeed& seed : conversations()) {
      for (const int exports : {0, 1, 2})
        seeds.push_back({seed.name, bytes_of({exports, exports * 3, 4 + exports}) + seed.bytes});
    }
  } else if (target == "transmission") {
    for (const FuzzSeed& seed : request_streams()) {
      for (const int variant : {0x40, 0x43, 0x63, 0x5c})
        seeds.push_back({seed.name, bytes_of({variant, variant & 3, 200}) + seed.bytes});
    }
    add_short_forms(seeds, 40, 0x3f);
  } else {
    for (const FuzzSeed& seed : conversations())
      seeds.push_back({seed.name, bytes_of({0x87, 0, 0}) + seed.bytes + header(0, 0, 0, 4096)});
    for (const FuzzSeed& seed : request_streams())
      seeds.push_back({seed.name, bytes_of({0x82, 40, 0}) + go + seed.bytes});
    add_short_forms(seeds, 30, 0x7f);
  }
  add_findings(seeds, target);
  return seeds;
}

}  // namespace tuck::test
