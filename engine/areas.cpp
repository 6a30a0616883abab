#include "engine/engine_impl.h"

namespace tuck::engine {
namespace {

Error bad_setting(CodecSetting codec) {
  return Error{Errc::invalid, "there is no codec " + std::to_string(static_cast<int>(codec.kind)) +
                                  " with level " + std::to_string(codec.level) +
                                  ": see CodecSetting for those that there are"};
}

}  // namespace

Result<AreaId, Error> EngineImpl::add_area(const AreaOptions& options) {
  if (options.slots == 0 || options.slots > SlotTable::kSlotsMax) {
    return Error{Errc::invalid, "an area of " + std::to_string(options.slots) +
                                    " pages cannot be: it has 1 to 2^32 (4 KiB to 16 TiB)"};
  }
  if (!is_valid(options.codec)) return bad_setting(options.codec);
  MutexLock guard(admin_);
  uint32_t id = 0;
  while (id < kAreasMax && areas_[id].load(std::memory_order_relaxed) != nullptr)
    ++id;
  if (id == kAreasMax) {
    return Error{Errc::invalid, "there are 4096 areas already, which is the most"};
  }
  if (auto failure = codecs_->prepare(options.codec)) return *failure;
  auto table = SlotTable::create(*options_.memory, options.slots, options.populate_table);
  if (!table) return table.error();
  const AreaId area_id{static_cast<uint16_t>(id)};
  // release: pairs with find().
  areas_[id].store(new Area(area_id, options, std::move(*table)), std::memory_order_release);
  return area_id;
}

Status EngineImpl::remove_area(AreaId id) {
  Area* const area = find(id, SlotIndex{0}, 0);
  if (area == nullptr) return Error{Errc::out_of_range, "there is no such area"};
  uint64_t done = 0;
  while (done < area->table.slots()) {
    const uint64_t rest = area->table.slots() - done;
    const auto step = static_cast<uint32_t>(std::min<uint64_t>(rest, 1u << 20));
    const RunResult freed = free(id, SlotIndex{static_cast<uint32_t>(done)}, step);
    TUCK_CHECK(freed.code == Errc::ok);
    done += step;
  }
  TUCK_SYNC_POINT("engine.remove_area.emptied");
  MutexLock guard(admin_);
  areas_[value(id)].store(nullptr, std::memory_order_release);
  delete area;
  return {};
}

Status EngineImpl::set_codec(AreaId id, CodecSetting codec) {
  if (!is_valid(codec)) return bad_setting(codec);
  MutexLock guard(admin_);
  Area* const area = find(id, SlotIndex{0}, 0);
  if (area == nullptr) return Error{Errc::out_of_range, "there is no such area"};
  if (auto failure = codecs_->prepare(codec)) return failure;
  // release: a store that sees the setting sees the contexts made for it.
  area->codec.store(codec, std::memory_order_release);
  return {};
}

}  // namespace tuck::engine
