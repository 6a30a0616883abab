// Streams of requests out of a fuzzer's bytes. A mutation that hits a request of 28 bytes rarely
// leaves it right, so there is a short form as well: eight bytes a request, nearly all of which
// mean something.
#pragma once

#include <string>

#include "tests/fuzz/fuzz_targets.h"

namespace tuck::test {

// The disk that the streams are made for: it ends inside a page, and has room for READs that are
// too long for a reply put together in advance.
inline constexpr uint64_t kFuzzDiskBytes = (320u << 10) + 100;
inline constexpr size_t kShortRequestBytes = 8;

// What the short forms stand for, payloads included; ends after some hundred KiB.
std::string request_stream(FuzzInput short_forms);

}  // namespace tuck::test
