#include "tests/fuzz/request_stream.h"

#include <algorithm>
#include <cstring>

#include "tests/nbd/machine.h"
#include "tests/support/seed.h"

namespace tuck::test {

namespace {

constexpr size_t kStreamBytesMax = 384u << 10;
constexpr uint16_t kCommands[16] = {0, 0, 0, 1, 1, 1, 1, 4, 6, 6, 7, 7, 3, 5, 2, 9};

uint32_t length_of(uint8_t kind, uint8_t a, uint8_t b) {
  constexpr uint32_t kPage = kPageSize;
  switch (kind % 8) {
    case 0:
    case 1:
      return kPage;
    case 2:
      return kPage * (1u + a % 4);
    case 3:
      return a;
    case 4:
      return kPage * (1u + a % 80) + b;
    case 5:
      return 256u * a + b;
    case 6:
      return 64u << 10;
    default:
      return a < 250 ? kPage : uint32_t{b} << 24 | 1u;
  }
}

void append(std::string& stream, const uint8_t* form) {
  const uint16_t command = kCommands[form[0] % 16];
  // Rarely a goodbye: nothing behind it counts.
  const bool goodbye = command == 2;
  if (goodbye && form[1] < 200) return;
  const uint16_t flags =
      form[1] < 200 || goodbye ? uint16_t{0} : static_cast<uint16_t>(1u << form[1] % 6);
  uint64_t offset = form[2] % 84 * kPageSize;
  if ((form[3] & 3) == 0) offset += form[4] * 16u + (form[3] >> 4);
  uint32_t length = length_of(form[5], form[6], form[7]);
  if (command == 3 && form[3] != 0) offset = length = 0;
  stream += header(command, 0, offset, length, flags);
  if (command != 1) return;
  const size_t payload = std::min<size_t>(length, kStreamBytesMax);
  const size_t begin = stream.size();
  stream.resize(begin + payload, static_cast<char>(form[7]));
  if ((form[4] & 1) == 0) return;
  Random noise(form[7]);
  for (size_t i = begin; i + sizeof(uint64_t) <= stream.size(); i += sizeof(uint64_t)) {
    const uint64_t bytes = noise.next();
    std::memcpy(&stream[i], &bytes, sizeof bytes);
  }
}

}  // namespace

std::string request_stream(FuzzInput short_forms) {
  std::string stream;
  while (short_forms.size() >= kShortRequestBytes && stream.size() < kStreamBytesMax) {
    append(stream, reinterpret_cast<const uint8_t*>(short_forms.data()));
    short_forms = short_forms.subspan(kShortRequestBytes);
  }
  // What is left over is the beginning of something.
  stream.append(reinterpret_cast<const char*>(short_forms.data()), short_forms.size());
  return stream;
}

}  // namespace tuck::test
