// What thousands of clients leave behind when they are gone: nothing. The process's own figures are
// compared, so this program has no other tests.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "frontends/nbd/connection_memory.h"
#include "frontends/nbd/protocol.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/hostile.h"
#include "tests/support/scale.h"

namespace tuck::test {
namespace {

using nbd::Option;

struct Figures {
  uint64_t resident = 0;  // VmRSS
  uint64_t data = 0;      // VmData
  uint64_t descriptors = 0;
};

Figures figures_now() {
  Figures figures;
  std::ifstream status("/proc/self/status");
  std::string line;
  const auto kib = [&line] { return std::stoull(line.substr(line.find(':') + 1)) * 1024; };
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) figures.resident = kib();
    if (line.starts_with("VmData:")) figures.data = kib();
  }
  const std::filesystem::directory_iterator open("/proc/self/fd");
  figures.descriptors = static_cast<uint64_t>(std::distance(begin(open), end(open)));
  return figures;
}

// How far the figures may be above where they were. Measured: VmData 40 KiB, resident memory 52 to
// 180 KiB, the heap of this very test; 250 KiB would be 25 bytes a client.
constexpr uint64_t kSlackBytes = 250u << 10;
// What is kept on purpose, however many clients there were. How much of it the first clients have
// touched is up to chance.
constexpr uint64_t kWarmBytes = nbd::ConnectionMemory::kWarmBytes;
static_assert(kWarmBytes < 4u << 20);

void expect_back(const char* what, const Figures& before, const Figures& after) {
  const auto kib = [](uint64_t now, uint64_t then) {
    return (static_cast<int64_t>(now) - static_cast<int64_t>(then)) / 1024;
  };
  std::printf("%s: VmRSS %+ld KiB of %lu, VmData %+ld KiB, descriptors %+ld\n", what,
              kib(after.resident, before.resident), before.resident / 1024,
              kib(after.data, before.data),
              static_cast<long>(after.descriptors) - static_cast<long>(before.descriptors));
  EXPECT_EQ(after.descriptors, before.descriptors);
  // The sanitizers keep freed memory back, and shadows of what was touched.
  if (kSanitized) return;
  EXPECT_LE(after.resident, before.resident + kWarmBytes + kSlackBytes);
  EXPECT_LE(after.data, before.data + kSlackBytes);
}

class HostileMemory : public HostileTest {
 protected:
  void start_with(unsigned connections) {
    TestServerOptions options = small_disk();
    options.server.connections_max = connections;
    options.server.negotiation_time_max = std::chrono::seconds(120);
    start(std::move(options));
    text_ = std::string(300'000, 's');
  }
  // One client after the other, each another way of coming and going.
  void come_and_go(uint32_t clients) {
    for (uint32_t i = 0; i < clients; ++i) {
      const int fd = connected(path());
      ASSERT_GE(fd, 0) << "client " << i;
      RawClient client(fd);
      switch (i % 5) {
        case 0:
          break;
        case 1:
          client.receive(1);
          break;
        case 2:
          client.send(client_flags() + option(Option::list));
          client.receive(nbd::kGreetingBytes + 20);
          break;
        case 3:
          client.send(client_flags() + option(Option::go, info_data("nosuch")) + "IHAVE");
          break;
        default:
          use_the_disk(client, i);
      }
    }
  }
  // Pages of one word each: they take nothing from the pool.
  void use_the_disk(RawClient& client, uint32_t i) {
    if (!client.go()) return;  // refused, when there are too many
    const bool all_buffers = i % 100 == 4;
    const uint32_t length = all_buffers ? 300'000 : 4096;
    client.send(request(kWrite, 1, 0, length) + text_.substr(0, length));
    EXPECT_EQ(client.receive(nbd::kSimpleReplyBytes), simple_reply(1));
    client.send(request(kRead, 2, 0, length));
    if (i % 2 == 0) {
      EXPECT_EQ(client.receive(nbd::kSimpleReplyBytes), simple_reply(2));
    }
  }
  // So many clients and the well-behaved one have been accepted and are not gone.
  bool there_are(uint64_t clients) {
    return eventually([&] { return server().report().connections_now == 1 + clients; });
  }
  // Half-open in three ways, all at once.
  std::vector<std::unique_ptr<RawClient>> half_open(int count) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(std::make_unique<RawClient>(path()));
      if (i % 3 == 1) clients.back()->send(client_flags());
      if (i % 3 == 2) {
        clients.back()->send(client_flags() + option(Option::list) +
                             option(Option::go, info_data("")).substr(0, 20));
      }
    }
    return clients;
  }

 private:
  std::string text_;
};

TEST_F(HostileMemory, TenThousandConnectsAndDisconnects) {
  start_with(128);
  come_and_go(500);
  ASSERT_TRUE(all_gone());
  const Figures before = figures_now();
  come_and_go(scaled(10'000));
  ASSERT_TRUE(all_gone());
  expect_back("10,000 connects", before, figures_now());
}

TEST_F(HostileMemory, AThousandHalfOpenClientsThatAllFit) {
  start_with(1100);
  come_and_go(500);
  ASSERT_TRUE(all_gone());
  {
    const auto clients = half_open(20);
    ASSERT_TRUE(there_are(20));
  }
  ASSERT_TRUE(all_gone());
  const Figures before = figures_now();
  for (int round = 0; round < 3; ++round) {
    auto clients = half_open(1000);
    ASSERT_TRUE(there_are(1000));
    EXPECT_TRUE(eventually(
        [&] { return server().report().in_flight_bytes == nbd::in_flight_bytes_a_client(); }));
    expect_well();
    // The new client of expect_well() has gone, and the server may not have heard of it yet.
    ASSERT_TRUE(there_are(1000));
    const Figures now = figures_now();
    std::printf("1,000 half-open clients: %ld KiB\n",
                (static_cast<long>(now.resident) - static_cast<long>(before.resident)) / 1024);
    if (!kSanitized) {
      // Four pages each at most: the machine's two and one of each buffer. Measured: 10.8 MiB for
      // all of them.
      EXPECT_LE(now.resident, before.resident + 1000 * 4 * kPageSize + kWarmBytes);
    }
    EXPECT_EQ(now.descriptors, before.descriptors + 2 * 1000) << "both ends are here";
    clients.clear();
    ASSERT_TRUE(all_gone());
  }
  expect_back("1,000 half-open clients", before, figures_now());
}

TEST_F(HostileMemory, AThousandHalfOpenClientsAreTooMany) {
  start_with(100);
  come_and_go(500);
  ASSERT_TRUE(all_gone());
  const Figures before = figures_now();
  const uint64_t refused_before = server().report().connections_refused;
  auto clients = half_open(1000);
  ASSERT_TRUE(eventually(
      [&] { return server().report().connections_refused == refused_before + 1000 - 99; }));
  EXPECT_TRUE(eventually([&] { return server().report().connections_now == 100u; }));
  clients.clear();
  ASSERT_TRUE(all_gone());
  expect_back("1,000 half-open clients at 99 places", before, figures_now());
}

}  // namespace
}  // namespace tuck::test
