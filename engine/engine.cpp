#include "engine/engine.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "engine/engine_impl.h"

namespace tuck::engine {
namespace {

AnonymousMemorySource& anonymous_memory() {
  // Stateless: one for all engines.
  static AnonymousMemorySource source;
  return source;
}

// Address space of the pool: 16 times what may become resident, so that a pool whose sparse zspages
// are scattered over all its blocks still finds whole ones. Addresses cost nothing; at most what
// an entry's location can name.
uint64_t address_space_bytes(uint64_t limit_bytes) {
  constexpr uint64_t kMost = 1ull << 40;
  constexpr uint64_t kLeast = 1ull << 30;
  const auto physical = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t resident = limit_bytes != 0 ? limit_bytes : physical;
  return std::clamp(std::min(resident, kMost / 16) * 16, kLeast, kMost);
}

// The longest payload whose class is smaller than a raw page's.
uint32_t compressed_bytes_max(const allocator::Allocator& pool) {
  const uint32_t raw = pool.object_bytes(kPageSize);
  uint32_t bytes = kPageSize;
  while (pool.object_bytes(bytes) == raw)
    --bytes;
  return bytes;
}

}  // namespace

EngineImpl::EngineImpl(const EngineOptions& options, std::unique_ptr<allocator::Allocator> pool,
                       std::unique_ptr<Codecs> codecs, ReservedArray<PinState> pins)
    : options_(options),
      pool_(std::move(pool)),
      codecs_(std::move(codecs)),
      compressed_bytes_max_(compressed_bytes_max(*pool_)),
      pins_(*pool_, std::move(pins)) {
  pool_->maintain();
}

Status EngineImpl::start_background() {
  if (!options_.background_thread) return {};
  thread_ = std::thread([this] { background(); });
  // For whoever looks at the process from outside; nothing depends on it.
  static_cast<void>(::pthread_setname_np(thread_.native_handle(), "tuck-background"));
  return {};
}

EngineImpl::~EngineImpl() {
  if (thread_.joinable()) {
    {
      MutexLock guard(wake_lock_);
      stop_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }
  TUCK_CHECK(tickets_.empty());
  for (const auto& area : areas_)
    delete area.load(std::memory_order_relaxed);
}

Result<std::unique_ptr<EngineImpl>, Error> EngineImpl::create(const EngineOptions& requested) {
  EngineOptions options = requested;
  if (options.memory == nullptr) options.memory = &anonymous_memory();
  constexpr uint64_t kLeastLimit = 1ull << 20;
  if (options.memory_limit_bytes != 0 && options.memory_limit_bytes < kLeastLimit) {
    return Error{Errc::invalid, "a memory limit of " + format_size(options.memory_limit_bytes) +
                                    " holds nothing: give at least 1M"};
  }
  allocator::AllocatorOptions pool_options;
  pool_options.memory = options.memory;
  pool_options.address_space_bytes = address_space_bytes(options.memory_limit_bytes);
  pool_options.limit_bytes = options.memory_limit_bytes;
  pool_options.reserve_bytes = options.reserve_bytes;
  pool_options.empty_reserve = options.empty_reserve;
  auto pool = allocator::Allocator::create(pool_options);
  if (!pool) return pool.error();
  auto codecs = Codecs::create();
  if (!codecs) return codecs.error();
  auto pins =
      ReservedArray<PinState>::create(anonymous_memory(), Epochs::kLines, "the calls' lines");
  if (!pins) return pins.error();
  if (options.empty_reserve != EmptyReserve::populate &&
      pins->populate_bytes(0, pins->size_bytes()) != Errc::ok) {
    return Error{Errc::no_space, "no memory for the calls' lines (" +
                                     format_size_rounded(pins->size_bytes()) + ")"};
  }
  auto engine =
      std::make_unique<EngineImpl>(options, std::move(*pool), std::move(*codecs), std::move(*pins));
  if (auto failure = engine->start_background()) return *failure;
  return engine;
}

// --- The façade ----------------------------------------------------------------------------------

Pin::~Pin() {
  if (state_ != nullptr) engine_->pins().leave(*state_);
}

Engine::Engine(std::unique_ptr<EngineImpl> impl) noexcept : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>, Error> Engine::create(const EngineOptions& options) {
  return or_no_memory("the engine", [&]() -> Result<std::unique_ptr<Engine>, Error> {
    auto impl = EngineImpl::create(options);
    if (!impl) return impl.error();
    return std::unique_ptr<Engine>(new Engine(std::move(*impl)));
  });
}

Result<AreaId, Error> Engine::add_area(const AreaOptions& options) {
  return or_no_memory("an area", [&] { return impl_->add_area(options); });
}
Status Engine::remove_area(AreaId area) {
  return or_no_memory("an error message", [&] { return impl_->remove_area(area); });
}
Status Engine::set_codec(AreaId area, CodecSetting codec) {
  return or_no_memory("a codec", [&] { return impl_->set_codec(area, codec); });
}

RunResult Engine::store(AreaId area, SlotIndex slot, uint32_t pages, const std::byte* data,
                        Ticket* ticket) noexcept {
  return impl_->store(area, slot, pages, data, ticket);
}
RunResult Engine::load(AreaId area, SlotIndex slot, uint32_t pages, std::byte* out,
                       Ticket* /*ticket*/) noexcept {
  return impl_->load(area, slot, pages, out);
}
RunResult Engine::free(AreaId area, SlotIndex slot, uint32_t pages) noexcept {
  return impl_->free(area, slot, pages);
}
size_t Engine::extents(AreaId area, SlotIndex slot, uint32_t pages, std::span<Extent> out,
                       uint32_t* pages_covered) const noexcept {
  return impl_->extents(area, slot, pages, out, pages_covered);
}

Pin Engine::pin() noexcept {
  // Room for a few publications, so that a read-modify-write seldom has to end it and start over.
  return Pin(impl_.get(), &impl_->pins().enter(PinState::kRetiredMax / 2));
}
RunResult Engine::load(const Pin& pin, AreaId area, SlotIndex slot, uint32_t pages, std::byte* out,
                       Entry* seen) noexcept {
  return impl_->load(*pin.state_, area, slot, pages, out, seen);
}
RunResult Engine::store_if(const Pin& pin, AreaId area, SlotIndex slot, uint32_t pages,
                           const std::byte* data, const Entry* seen, Ticket* ticket) noexcept {
  return impl_->store_if(*pin.state_, area, slot, pages, data, seen, ticket);
}

Stats Engine::stats() const noexcept {
  try {
    return impl_->stats();
  } catch (const std::bad_alloc&) {
    Stats none;
    none.complete = false;
    return none;
  }
}
bool Engine::fetch_room() noexcept {
  return impl_->fetch_room();
}
void Engine::maintain() noexcept {
  impl_->maintain();
}
void Engine::quiesce() noexcept {
  impl_->quiesce();
}
void Engine::verify() const {
  impl_->verify();
}

}  // namespace tuck::engine
