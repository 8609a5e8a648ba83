// SPDX-License-Identifier: GPL-3.0-or-later
#include <dlfcn.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <filesystem>

#include "app/cli/machine_text.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/model/container.h"
#include "engine/store/folder_calibration.h"
#include "engine/store/ring.h"
#include "kernels/kernels.h"
#include "profiler/gpu/gpu_source.h"
#include "profiler/machine/measure_machine.h"

namespace colibri::cli {

namespace {

constexpr double kBusyLoad = 0.3;  // per processor

struct DiagnoseArgs {
    std::string folder = ".";
    bool json = false, quick = false, measure = false, pmSampling = false;
};

// Why CUDA is not available: the first missing library or device file.
std::string cudaReason() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "no NVIDIA driver (libcuda.so.1 cannot be loaded)";
    dlclose(library);
    std::error_code ignored;
    if (!std::filesystem::exists("/dev/nvidiactl", ignored)) {
        return "no NVIDIA device (/dev/nvidiactl is missing)";
    }
    return {};
}

std::string systemName() {
    utsname names{};
    return uname(&names) == 0
               ? std::string(names.sysname) + " " + names.release + " " + names.machine
               : "n/a";
}

// Every source of GPU counters, used or not, with the reason and what to do about it.
Json gpuSources(const GpuSource& gpu) {
    Json sources = Json::array();
    for (const GpuRung& rung : gpu.ladder()) {
        sources.push_back({{"key", rung.key},
                           {"name", rung.name},
                           {"measures", rung.measures},
                           {"state", gpuRungStateName(rung.state)},
                           {"reason", rung.refusal.message()},
                           {"remedy", rung.refusal.hint()}});
    }
    return sources;
}

Json probe(const DiagnoseArgs& args) {
    Json isas = Json::array();
    for (const Isa isa : availableIsas()) isas.push_back(isaName(isa));
    const std::unique_ptr<GpuSource> gpu =
        GpuSource::probe({.pmSampling = args.pmSampling, .tryActivity = true});
    const std::string cuda = cudaReason();
    const Result<std::unique_ptr<Ring>> ring = Ring::open();
    Json json = {{"version", COLIBRI_VERSION},
                 {"container_schema", kContainerSchema},
                 {"compiler", __VERSION__},
                 {"system", systemName()},
                 {"cpu",
                  {{"name", processorName()},
                   {"physical_cores", physicalCores()},
                   {"logical_cpus", logicalCpus()},
                   {"numa_nodes", numaNodes()},
                   {"isas", std::move(isas)},
                   {"vnni", hasVnni()}}},
                 {"memory",
                  {{"total_bytes", memoryTotal()},
                   {"free_bytes", memoryFreeNow()},
                   {"read_bytes_per_s", nullptr}}},
                 {"disk", {{"folder", args.folder}}},
                 {"io_uring",
                  {{"available", ring.ok()},
                   {"reason", ring.ok() ? Json("") : Json(ring.status().message())}}},
                 {"gpu",
                  {{"available", gpu->available()},
                   {"name", gpu->available() ? Json(gpu->name()) : Json(nullptr)},
                   {"reason", gpu->reason()},
                   {"cuda_reason", cuda},
                   {"sm_utilisation_reason", gpu->smReason()},
                   {"clocks_locked", gpu->clocksLocked()},
                   {"sources", gpuSources(*gpu)}}}};
    return json;
}

std::string sourceText(const Json& source) {
    const auto field = [&](const char* key) { return source[key].get<std::string>(); };
    std::string text = "  " + field("name") + ": " + field("state");
    if (field("reason").empty()) return text + ". It measures " + field("measures") + "\n";
    text += ", " + field("reason") + "\n";
    return field("remedy").empty() ? text : text + "    " + field("remedy") + "\n";
}

std::string text(const Json& j) {
    std::string s;
    const auto line = [&](const std::string& name, const std::string& value) {
        s += name + std::string(name.size() < 16 ? 16 - name.size() : 1, ' ') + value + "\n";
    };
    const auto integer = [](const Json& v) { return formatCount(v.get<int64_t>()); };
    const Json &cpu = j["cpu"], &memory = j["memory"], &disk = j["disk"], &gpu = j["gpu"];
    std::string isas;
    for (const Json& isa : cpu["isas"]) isas += (isas.empty() ? "" : ", ") + isa.get<std::string>();
    line("Colibri", j["version"].get<std::string>() + ", container schema " +
                        integer(j["container_schema"]) + ", gcc " +
                        j["compiler"].get<std::string>());
    line("System", j["system"].get<std::string>());
    line("Processor", cpu["name"].get<std::string>() + ", " + integer(cpu["physical_cores"]) +
                          " cores, " + integer(cpu["logical_cpus"]) + " usable processors");
    line("Instructions", isas + (cpu["vnni"].get<bool>() ? " with VNNI" : ""));
    line("NUMA nodes", integer(cpu["numa_nodes"]));
    line("Memory", formatGiB(memory["total_bytes"].get<double>()) + ", " +
                       formatGiB(memory["free_bytes"].get<double>()) + " free");
    const Json& rate = memory["read_bytes_per_s"];
    line("Memory reads", rate.is_null() ? "n/a: not measured" : formatRate(rate.get<double>()));
    const Json reads = disk.value("read_bytes_per_s", Json(nullptr));
    if (reads.is_number()) {
        line("Disk reads", formatRate(reads.get<double>()) + " in " +
                               disk["folder"].get<std::string>() + ", 8 at once, " +
                               disk["reads"].get<std::string>() +
                               (disk["direct"].get<bool>() ? ", direct" : ", through the cache"));
    } else {
        line("Disk reads", "n/a: " + disk.value("reason", std::string("not measured")));
    }
    const std::string refused = j["io_uring"]["reason"].get<std::string>();
    line("Expert reads",
         refused.empty() ? "io_uring" : "pread on threads (no io_uring: " + refused + ")");
    if (gpu["available"].get<bool>()) {
        line("GPU", gpu["name"].get<std::string>());
    } else {
        line("GPU", "n/a: " + gpu["reason"].get<std::string>());
    }
    s += "GPU counters\n";
    for (const Json& source : gpu["sources"]) s += sourceText(source);
    return s;
}

// What --measure measures, or measured earlier.
Result<std::optional<MachineProfile>> profileOf(const DiagnoseArgs& args) {
    if (!args.measure) return keptProfile();
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > kBusyLoad * logicalCpus())
        message("Other programs use this machine (load " + formatFixed(load, 1) + " on " +
                formatCount(logicalCpus()) +
                " processors): the rates will be too low. Measure again when it is idle");
    ProgressLine progress;
    Result<MachineProfile> profile =
        measureMachine(args.folder, progress.function(), interrupted());
    progress.finish();
    if (!profile.ok()) return profile.status();
    if (const Status kept = keepProfile(*profile); !kept.ok())
        message("The measurement is not kept: " + kept.message());
    return std::optional(std::move(*profile));
}

int run(const DiagnoseArgs& args) {
    Json json = probe(args);
    const Result<std::optional<MachineProfile>> profile = profileOf(args);
    if (!profile.ok()) return fail(profile.status());
    json["profile"] = *profile ? profileJson(**profile) : Json(nullptr);
    Status measured;
    if (!args.quick) {
        const Result<Calibration> rates = calibrateFolder(args.folder, interrupted());
        measured = rates.status();
        if (rates.ok()) {
            const auto rate = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
            json["memory"]["read_bytes_per_s"] = rate(rates->memoryBytesPerSecond);
            json["disk"]["read_bytes_per_s"] = rate(rates->diskBytesPerSecond);
            json["disk"]["direct"] = rates->direct;
            json["disk"]["reads"] = rates->reads;
        }
        json["disk"]["reason"] = rates.ok() ? rates->reason : measured.message();
    }
    const std::string measurement =
        *profile ? profileText(**profile)
                 : "Not measured: rates by threads, block size and weight format. "
                   "colibri diagnose --measure does it in about ten seconds.\n";
    const bool written = args.json ? outJson(json) == kOk : out(text(json) + "\n" + measurement);
    if (!measured.ok()) return fail(measured);
    return written ? kOk : kFailed;
}

}  // namespace

void addDiagnose(Verbs& verbs) {
    auto args = std::make_shared<DiagnoseArgs>();
    CLI::App* verb =
        verbs.add("diagnose", "Show and measure what this machine offers, in a few seconds",
                  [args] { return run(*args); });
    verb->add_option("--dir", args->folder, "Folder on the disk to measure")->capture_default_str();
    CLI::Option* quick = verb->add_flag("--quick", args->quick, "Skip the measurements");
    verb->add_flag("--measure", args->measure,
                   "Also measure memory by threads and node, the disk by block size and reads in "
                   "flight, kernels by weight format, and copies to a GPU; keep the result for "
                   "estimates and "
                   "verdicts")
        ->excludes(quick);
    verb->add_flag("--pm-sampling", args->pmSampling,
                   "Try PM sampling of the GPU, which locks its clocks for a moment");
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
