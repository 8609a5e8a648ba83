// SPDX-License-Identifier: Apache-2.0
#include "engine/store/store_factory.h"

#include <utility>

#include "engine/base/format.h"

namespace colibri {

StoreShape StoreFactory::shapeOf(const ContainerInfo& info) {
    StoreShape shape;
    shape.experts = info.config.numExperts;
    shape.topK = info.config.topK;
    for (const ExpertLayer& layer : info.expertLayers) {
        shape.layers.push_back(layer.layer);
        shape.recordBytes.push_back(layer.recordBytes);
        shape.files.push_back(layer.file);
    }
    return shape;
}

Result<std::unique_ptr<ExpertStore>> StoreFactory::open(StoreShape shape,
                                                        const StoreOptions& options,
                                                        Telemetry* telemetry, StoreParts parts) {
    for (size_t i = 0; i < shape.recordBytes.size(); ++i)
        if (shape.recordBytes[i] <= 0 || shape.recordBytes[i] % kRecordAlign != 0)
            return Status(Code::BadInput, shape.files[i] + ": expert records of " +
                                              formatCount(shape.recordBytes[i]) +
                                              " bytes; a multiple of " + formatCount(kRecordAlign) +
                                              " is needed");
    if (parts.memory == nullptr) parts.memory = std::make_unique<SlotMemory>();
    if (parts.numa == nullptr) parts.numa = Numa::system();
    if (parts.clock == nullptr) parts.clock = std::make_unique<StoreClock>();
    StoreOptions effective = options;
    if (!parts.directWorks) effective.ioMode = IoMode::Buffered;
    std::unique_ptr<ExpertStore> store(
        new ExpertStore(std::move(shape), effective, telemetry, std::move(parts)));
    COLIBRI_TRY(store->start());
    return store;
}

void StoreFactory::settle(ExpertStore& store) {
    store.settle();
}

std::vector<uint32_t> StoreFactory::order(const ExpertStore& store) {
    MutexLock lock(store.m_mutex);
    return store.m_slots.order().policy().order();
}

}  // namespace colibri
