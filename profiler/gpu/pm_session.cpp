// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/pm_session.h"

#include <algorithm>
#include <cmath>

namespace colibri {
namespace {

constexpr const char* kSampling = "PM sampling";
constexpr size_t kHardwareBytes = size_t(64) << 20;
constexpr uint32_t kMostSamples = 512;           // in one image of counter data
constexpr uint64_t kIntervalNs = 2'000'000;      // 500 samples a second
constexpr uint64_t kIntervalCycles = 3'000'000;  // about as long, where time cannot trigger
constexpr int kMostDecodes = 8;  // in one call, since samples may arrive as fast as they are read

struct PmMode {
    uint32_t trigger, append;
};
// From the best to the one that every GPU has.
constexpr PmMode kPmModes[] = {{cupti::kTriggerTime, cupti::kKeepLatest},
                               {cupti::kTriggerSysClock, cupti::kKeepLatest},
                               {cupti::kTriggerTime, cupti::kKeepOldest},
                               {cupti::kTriggerSysClock, cupti::kKeepOldest}};

// What a device lacks, in the words of cuptiProfilerDeviceSupported.
Status supportStatus(const cupti::DeviceSupportedParams& device) {
    const auto refused = [](uint32_t level) { return level == cupti::kUnsupported; };
    const auto status = [](const char* reason, const char* remedy) {
        return Status(Code::Unsupported, std::string(kSampling) + ": " + reason, remedy);
    };
    if (refused(device.architecture)) {
        return status("this GPU is too old for it", "None: Turing and later GPUs support it");
    }
    if (refused(device.sli)) return status("SLI is on", "Turn SLI off");
    if (refused(device.vGpu) || device.vGpu == cupti::kDisabled) {
        return status("the host of this virtual GPU does not allow it",
                      "Ask its administrator to enable profiling for this virtual machine");
    }
    if (refused(device.confidentialCompute)) {
        return status("confidential computing is on", "Turn it off to use counters");
    }
    if (refused(device.cmp)) {
        return status("this GPU is a mining processor without counters", "None on this GPU");
    }
    if (refused(device.wsl)) {
        return status("Windows' subsystem for Linux does not support it",
                      "Update Windows and the driver, or use Linux");
    }
    return status("this GPU does not support it", "None on this GPU");
}

}  // namespace

Result<std::unique_ptr<PmSession>> PmSession::start(std::shared_ptr<CudaDriver> driver,
                                                    std::shared_ptr<CuptiLibrary> cupti,
                                                    int deviceIndex) {
    auto session = std::unique_ptr<PmSession>(new PmSession(std::move(driver), std::move(cupti)));
    COLIBRI_TRY(session->open(deviceIndex));
    return session;
}

Status PmSession::open(int deviceIndex) {
    const Result<int> device = m_driver->device(deviceIndex);
    if (!device) return device.status();
    COLIBRI_TRY(m_driver->retainContext(*device));
    m_device = *device;
    m_cupti->addUser();
    m_user = true;
    COLIBRI_TRY(m_cupti->status(m_cupti->addProfilerUser(), kSampling));
    m_profilerUser = true;

    std::string chip;
    std::vector<uint8_t> availability;
    COLIBRI_TRY(checkDevice(deviceIndex, chip, availability));
    Result<std::unique_ptr<PmConfig>> config = PmConfig::create(m_cupti, chip, availability);
    if (!config) return config.status();
    m_config = std::move(*config);

    using Enable = cupti::PmEnableParams;
    auto enable = cupti::sized<Enable>(COLIBRI_CUPTI_SIZE(Enable, sampling));
    enable.deviceIndex = size_t(deviceIndex);
    COLIBRI_TRY(m_cupti->status(m_cupti->fn().pmEnable(&enable), kSampling));
    m_sampling = enable.sampling;
    COLIBRI_TRY(configure());
    COLIBRI_TRY(makeCounterData());
    auto start = cupti::sized<cupti::PmParams>(COLIBRI_CUPTI_SIZE(cupti::PmParams, sampling));
    start.sampling = m_sampling;
    COLIBRI_TRY(m_cupti->status(m_cupti->fn().pmStart(&start), kSampling));
    m_started = true;
    return {};
}

Status PmSession::checkDevice(int deviceIndex, std::string& chip,
                              std::vector<uint8_t>& availability) {
    const cupti::Functions& fn = m_cupti->fn();
    using Support = cupti::DeviceSupportedParams;
    auto support = cupti::sized<Support>(COLIBRI_CUPTI_SIZE(Support, api));
    support.device = m_device;
    support.api = cupti::kApiPmSampling;
    COLIBRI_TRY(m_cupti->status(fn.deviceSupported(&support), kSampling));
    if (support.isSupported != cupti::kSupported) return supportStatus(support);

    using Chip = cupti::ChipNameParams;
    auto name = cupti::sized<Chip>(COLIBRI_CUPTI_SIZE(Chip, chipName));
    name.deviceIndex = size_t(deviceIndex);
    COLIBRI_TRY(m_cupti->status(fn.chipName(&name), kSampling));
    if (name.chipName) chip = name.chipName;

    using Available = cupti::PmAvailabilityParams;
    auto available = cupti::sized<Available>(COLIBRI_CUPTI_SIZE(Available, image));
    available.deviceIndex = size_t(deviceIndex);
    COLIBRI_TRY(m_cupti->status(fn.pmAvailability(&available), kSampling));  // its size
    availability.assign(available.imageSize, 0);
    available.image = availability.data();
    return m_cupti->status(fn.pmAvailability(&available), kSampling);
}

Status PmSession::configure() {
    using Config = cupti::PmConfigParams;
    cupti::Result result = cupti::kSuccess;
    for (const PmMode& mode : kPmModes) {
        auto config = cupti::sized<Config>(COLIBRI_CUPTI_SIZE(Config, appendMode));
        config.sampling = m_sampling;
        config.configSize = m_config->image().size();
        config.config = m_config->image().data();
        config.hardwareBufferSize = kHardwareBytes;
        config.samplingInterval =
            mode.trigger == cupti::kTriggerTime ? kIntervalNs : kIntervalCycles;
        config.triggerMode = mode.trigger;
        config.appendMode = mode.append;
        result = m_cupti->fn().pmSetConfig(&config);
        const bool otherMode = result == cupti::kInvalidParameter ||
                               result == cupti::kInvalidOperation || result == cupti::kNotSupported;
        if (!otherMode) break;
    }
    return m_cupti->status(result, kSampling);
}

Status PmSession::makeCounterData() {
    using Size = cupti::PmDataSizeParams;
    auto size = cupti::sized<Size>(COLIBRI_CUPTI_SIZE(Size, counterDataSize));
    size.sampling = m_sampling;
    size.metricNames = m_config->names();
    size.numMetrics = size_t(m_config->metrics());
    size.maxSamples = kMostSamples;
    COLIBRI_TRY(m_cupti->status(m_cupti->fn().pmDataSize(&size), kSampling));
    m_counterData.assign(size.counterDataSize, 0);
    return m_cupti->status(initializeCounterData(), kSampling);
}

cupti::Result PmSession::initializeCounterData() {
    using Data = cupti::PmDataInitializeParams;
    auto data = cupti::sized<Data>(COLIBRI_CUPTI_SIZE(Data, counterData));
    data.sampling = m_sampling;
    data.counterDataSize = m_counterData.size();
    data.counterData = m_counterData.data();
    return m_cupti->fn().pmDataInitialize(&data);
}

Status PmSession::decode(std::vector<PmSample>& out) {
    bool more = true;
    for (int i = 0; i < kMostDecodes && more; ++i) {
        cupti::Result result = decodeOnce(out, more);
        // A full hardware buffer that keeps its oldest samples stops; later ones are lost.
        if (result == cupti::kOutOfMemory) {
            ++m_overflows;
            more = false;
            result = restart();
        }
        COLIBRI_TRY(m_cupti->status(result, "PM sampling ended"));
    }
    return {};
}

cupti::Result PmSession::decodeOnce(std::vector<PmSample>& out, bool& more) {
    using Decode = cupti::PmDecodeParams;
    auto decode = cupti::sized<Decode>(COLIBRI_CUPTI_SIZE(Decode, overflow));
    decode.sampling = m_sampling;
    decode.counterData = m_counterData.data();
    decode.counterDataSize = m_counterData.size();
    if (const cupti::Result r = m_cupti->fn().pmDecode(&decode); r != cupti::kSuccess) return r;
    if (decode.overflow) ++m_overflows;
    more = decode.stopReason == cupti::kCounterDataFull;
    if (const cupti::Result r = addSamples(out); r != cupti::kSuccess) return r;
    return initializeCounterData();
}

cupti::Result PmSession::addSamples(std::vector<PmSample>& out) {
    const cupti::Functions& fn = m_cupti->fn();
    using Data = cupti::PmDataInfoParams;
    auto data = cupti::sized<Data>(COLIBRI_CUPTI_SIZE(Data, numCompletedSamples));
    data.counterData = m_counterData.data();
    data.counterDataSize = m_counterData.size();
    if (const cupti::Result r = fn.pmDataInfo(&data); r != cupti::kSuccess) return r;
    for (size_t i = 0; i < data.numCompletedSamples; ++i) {
        using Info = cupti::PmSampleInfoParams;
        auto info = cupti::sized<Info>(COLIBRI_CUPTI_SIZE(Info, endTimestamp));
        info.sampling = m_sampling;
        info.counterData = m_counterData.data();
        info.counterDataSize = m_counterData.size();
        info.sampleIndex = i;
        if (const cupti::Result r = fn.pmSampleInfo(&info); r != cupti::kSuccess) return r;
        PmSample sample;
        std::fill(std::begin(sample.percent), std::end(sample.percent), NAN);
        const cupti::Result result = m_config->evaluate(m_counterData, i, sample.percent);
        if (result != cupti::kSuccess) return result;
        // The first sample after the start has a time of another clock.
        const bool first = std::exchange(m_first, false);
        if (first || info.endTimestamp <= info.startTimestamp) continue;
        sample.durationNs = info.endTimestamp - info.startTimestamp;
        out.push_back(sample);
    }
    return cupti::kSuccess;
}

cupti::Result PmSession::restart() {
    const cupti::Functions& fn = m_cupti->fn();
    auto params = cupti::sized<cupti::PmParams>(COLIBRI_CUPTI_SIZE(cupti::PmParams, sampling));
    params.sampling = m_sampling;
    if (const cupti::Result r = fn.pmStop(&params); r != cupti::kSuccess) return r;
    m_first = true;
    return fn.pmStart(&params);
}

// In this order: a session that is disabled before it has stopped loses the state of other users.
PmSession::~PmSession() {
    const cupti::Functions& fn = m_cupti->fn();
    auto params = cupti::sized<cupti::PmParams>(COLIBRI_CUPTI_SIZE(cupti::PmParams, sampling));
    params.sampling = m_sampling;
    if (m_started && fn.pmStop(&params) == cupti::kSuccess) {
        std::vector<PmSample> last;
        bool more = true;
        for (int i = 0; i < kMostDecodes && more; ++i) {
            if (decodeOnce(last, more) != cupti::kSuccess) break;
        }
    }
    if (m_sampling) (void)fn.pmDisable(&params);
    m_config.reset();
    if (m_profilerUser) m_cupti->removeProfilerUser();
    if (m_user) m_cupti->removeUser();
    if (m_device >= 0) m_driver->releaseContext(m_device);
}

}  // namespace colibri
