// SPDX-License-Identifier: Apache-2.0
#include "profiler/machine/machine_profile.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/machine.h"

namespace colibri {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProfileSchema = 1;
constexpr size_t kMostProfileBytes = 1 << 20;

std::filesystem::path profilePath() {
    const std::filesystem::path cache = cacheDirectory();
    return cache.empty() ? cache : cache / "machine.json";
}

}  // namespace

std::string measurementDate(int64_t secondsSince1970) {
    const auto time = std::time_t(secondsSince1970);
    std::tm local{};
    localtime_r(&time, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
    return text;
}

double MachineProfile::bestMemory() const {
    double best = 0;
    for (const Memory& m : memory) best = std::max(best, m.bytesPerSecond);
    return best;
}

double MachineProfile::remoteMemoryShare() const {
    double own = 0, remote = 0;
    for (const Memory& m : memory) {
        if (m.readerNode < 0) continue;
        double& best = m.readerNode == m.memoryNode ? own : remote;
        best = std::max(best, m.bytesPerSecond);
    }
    return own > 0 ? remote / own : 0;
}

const MachineProfile::Kernel* MachineProfile::kernel(DType type) const {
    const auto it = std::find_if(kernels.begin(), kernels.end(),
                                 [&](const Kernel& k) { return k.type == type; });
    return it == kernels.end() ? nullptr : &*it;
}

Json profileJson(const MachineProfile& p) {
    Json memory = Json::array(), disk = Json::array(), kernels = Json::array();
    for (const MachineProfile::Memory& m : p.memory)
        memory.push_back({{"threads", m.threads},
                          {"reader_node", m.readerNode},
                          {"memory_node", m.memoryNode},
                          {"bytes_per_s", m.bytesPerSecond}});
    for (const MachineProfile::Disk& d : p.disk)
        disk.push_back(
            {{"block_bytes", d.blockBytes}, {"depth", d.depth}, {"bytes_per_s", d.bytesPerSecond}});
    for (const MachineProfile::Kernel& k : p.kernels)
        kernels.push_back({{"type", dtypeName(k.type)},
                           {"weight_bytes_per_s", k.weightBytesPerSecond},
                           {"flops_per_s", k.flopsPerSecond}});
    return {{"schema", kProfileSchema},
            {"machine", p.machine},
            {"measured_at", p.measuredAt},
            {"folder", p.folder},
            {"reads", p.readPath},
            {"direct", p.direct},
            {"isa", p.isa},
            {"memory", std::move(memory)},
            {"disk", std::move(disk)},
            {"kernels", std::move(kernels)},
            {"gpu_copies",
             {{"to_gpu_bytes_per_s", p.gpu.toGpu},
              {"from_gpu_bytes_per_s", p.gpu.fromGpu},
              {"reason", p.gpu.reason}}}};
}

Result<MachineProfile> parseProfile(const Json& json) {
    MachineProfile p;
    try {
        if (json.at("schema").get<int>() != kProfileSchema)
            return Status(Code::BadInput, "schema " + json.at("schema").dump() + " is not known");
        p.machine = json.at("machine").get<std::string>();
        p.measuredAt = json.at("measured_at").get<int64_t>();
        p.folder = json.at("folder").get<std::string>();
        p.readPath = json.at("reads").get<std::string>();
        p.direct = json.at("direct").get<bool>();
        p.isa = json.at("isa").get<std::string>();
        for (const Json& m : json.at("memory"))
            p.memory.push_back({m.at("threads").get<int>(), m.at("reader_node").get<int>(),
                                m.at("memory_node").get<int>(), m.at("bytes_per_s").get<double>()});
        for (const Json& d : json.at("disk"))
            p.disk.push_back({d.at("block_bytes").get<int64_t>(), d.at("depth").get<int>(),
                              d.at("bytes_per_s").get<double>()});
        const Json& gpu = json.at("gpu_copies");
        p.gpu = {gpu.at("to_gpu_bytes_per_s").get<double>(),
                 gpu.at("from_gpu_bytes_per_s").get<double>(), gpu.at("reason").get<std::string>()};
        for (const Json& k : json.at("kernels")) {
            const auto type = dtypeFromName(k.at("type").get<std::string>());
            if (!type) continue;
            p.kernels.push_back({*type, k.at("weight_bytes_per_s").get<double>(),
                                 k.at("flops_per_s").get<double>()});
        }
    } catch (const Json::exception& error) {
        return Status(Code::BadInput, std::string("not a machine profile: ") + error.what());
    }
    return p;
}

std::optional<MachineProfile> keptProfile() {
    if (profilePath().empty()) return std::nullopt;
    const Result<std::string> text = readTextFile(profilePath(), kMostProfileBytes);
    if (!text) return std::nullopt;
    const Json json = Json::parse(*text, nullptr, false);
    if (json.is_discarded()) return std::nullopt;
    Result<MachineProfile> profile = parseProfile(json);
    if (!profile || profile->machine != machineFingerprint()) return std::nullopt;
    return std::move(*profile);
}

Status keepProfile(const MachineProfile& profile) {
    const std::filesystem::path path = profilePath();
    if (path.empty()) return {};
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return systemError("cannot create", path.parent_path(), error.value());
    return writeFileAtomically(path, profileJson(profile).dump(2) + "\n");
}

}  // namespace colibri
