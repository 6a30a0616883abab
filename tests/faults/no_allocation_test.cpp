// Threads that serve ask neither the heap nor the system for memory once they are warm: counted
// call by call, over requests of all kinds and over clients that come and go. (no_allocation.sh
// looks at the real program from outside.)
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <thread>

#include "tests/faults/allocation_count.h"
#include "tests/faults/disk.h"
#include "tests/nbd/test_server.h"
#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck::test {
namespace {

constexpr uint32_t kClients = 4;

// What serves; the background of the engine too, whose frames are the pool's.
const char* const kServing[] = {"tuck-nbd-", "tuck-listen", "tuck-background"};

TEST(NoAllocation, TheCountersCount) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has the heap for itself";
  count_from_here();
  AllocationCount count;
  std::thread thread([&count] {
    pthread_setname_np(pthread_self(), "tuck-nbd-test");
    count_from_here();
    // Where the compiler cannot tell, it leaves them in.
    void* volatile c = std::malloc(100);
    std::free(c);
    int* volatile cpp = new int;
    delete cpp;
    void* const at =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, 4096, MADV_DONTNEED);
    munmap(at, 4096);
    // Here, for the thread's end frees what its start was given.
    count = allocations_of("tuck-nbd-");
  });
  thread.join();
  // And what the thread frees of its own as it ends.
  EXPECT_GE(count.heap, 4u);
  EXPECT_EQ(count.system, 2u);
  EXPECT_EQ(count.frames, 1u);
}

void work(TestServer& server, std::vector<OwnedBytes>& owned, uint32_t steps, uint32_t clients) {
  std::vector<std::string> wrong(kClients);
  run_threads(kClients, [&](uint32_t i) {
    Random random(mix(seed(), i));
    for (uint32_t client = 0; client < clients && wrong[i].empty(); ++client) {
      NbdDisk disk(server.unix_uri());
      for (uint32_t step = 0; step < steps && wrong[i].empty(); ++step)
        wrong[i] = owned[i].step(disk, random);
    }
  });
  for (const std::string& what : wrong)
    EXPECT_EQ(what, "");
}

void run(bool stores_wait) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has the heap for itself";
  TestServerOptions options;
  options.disk_bytes = 16u << 20;
  options.server.workers = 2;
  if (stores_wait) options.engine.empty_reserve = engine::EmptyReserve::wait;
  TestServer server(std::move(options));
  std::vector<OwnedBytes> owned;
  for (uint32_t i = 0; i < kClients; ++i)
    owned.emplace_back(16u << 20, 9001, i, kClients);

  work(server, owned, 500, 3);
  count_from_here();
  const uint64_t before = server.operation("write").requests;
  work(server, owned, scaled(5000), 5);
  const uint64_t writes = server.operation("write").requests - before;
  for (const char* const name : kServing) {
    const AllocationCount count = allocations_of(name);
    EXPECT_EQ(count.heap, 0u) << name;
    EXPECT_EQ(count.system, 0u) << name;
    std::printf("%s: madvise %llu times\n", name, static_cast<unsigned long long>(count.frames));
  }
  if (stores_wait) {
    EXPECT_EQ(allocations_of("tuck-nbd-").frames, 0u);
  }
  EXPECT_GT(writes, scaled(5000) * kClients);
  std::printf("%llu writes among the requests\n", static_cast<unsigned long long>(writes));
}

TEST(NoAllocation, StoresThatPopulateThePool) {
  run(false);
}

TEST(NoAllocation, StoresThatUseTheReserve) {
  run(true);
}

}  // namespace
}  // namespace tuck::test
