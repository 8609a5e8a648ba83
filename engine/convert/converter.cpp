// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/converter.h"

#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/hasher.h"
#include "engine/base/printable.h"
#include "engine/convert/flat/flat.h"
#include "engine/convert/flat/flat_writer.h"
#include "engine/convert/hf/hf_config.h"
#include "engine/convert/open_source.h"
#include "engine/convert/pipeline/container_writer.h"
#include "engine/convert/pipeline/journal.h"
#include "engine/convert/pipeline/router_table_maker.h"
#include "engine/convert/pipeline/target.h"
#include "engine/model/layout.h"
#include "engine/model/model_json.h"
#include "engine/model/router_table.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSmallFiles = 9;  // texts, tables, journal, folders
// Of the written data; a new one makes interrupted conversions start over.
constexpr int kRevision = 2;

// The settings that must be equal for an interrupted conversion to resume.
std::string journalKey(const ConvertOptions& options, const OpenedSource& source,
                       const Plan& plan) {
    std::string text = std::to_string(kRevision) + "\n" + std::to_string(kContainerSchema) + "\n" +
                       source.fingerprint + "\n";
    for (const SourceFile& f : source.checkpoint.files()) {
        text += f.path.filename().string() + " " + std::to_string(f.bytes) + " " +
                std::to_string(f.modified) + "\n";
    }
    text += options.dtype ? std::string(dtypeName(*options.dtype)) : "source";
    for (const auto& [part, type] : options.types)
        text += "\n" + part + " " + std::string(dtypeName(type));
    text += options.layout == ConvertLayout::Flat ? "\nflat" : "\ncontainer";
    text += "\n" + plan.config.name + "\n" + std::to_string(plan.denseBytes) + "\n" +
            std::to_string(plan.expertBytes);
    return fingerprintOf(text);
}

// A broken tokenizer or template would make a container that cannot be loaded. An unsupported one
// is copied with a note, because the model can still be used with token ids.
Status checkTexts(const fs::path& path, const OpenedSource& source) {
    for (const Status* problem : {&source.tokenizerProblem, &source.templateProblem}) {
        if (problem->ok() || problem->code() == Code::Unsupported) continue;
        return problem->in(path.string());
    }
    return {};
}

// Writes the router table, or removes one that an earlier run with other options left.
Status addRouterTable(const fs::path& partial, const ConvertOptions& options,
                      const OpenedSource& source, const Plan& plan, const ProgressFn& progress,
                      const CancelFlag* cancel) {
    const fs::path file = partial / kRouterTableFile;
    if (options.routerTable ||
        (options.layout == ConvertLayout::Flat && source.routerTable.empty())) {
        return makeRouterTable(source, plan, file, progress, cancel);
    }
    std::error_code error;
    fs::remove(file, error);
    if (error) return systemError("cannot remove", file, error.value());
    if (source.routerTable.empty()) return {};
    COLIBRI_TRY(RouterTable::load(source.routerTable, plan.config).status());
    fs::copy_file(source.routerTable, file, error);
    return error ? systemError("cannot copy to", file, error.value()) : Status();
}

// Creates a config.json from a config. Errors: Unsupported if it cannot express all of it.
Result<std::string> madeHfConfig(const ModelConfig& config) {
    const std::string text = writeHfConfig(config);
    Result<nlohmann::json> json = parseJson(text, "config.json");
    if (!json) return json.status();
    Result<HfConfig> back = readHfConfig(*json, {}, "config.json");
    ContainerInfo wanted, got;
    wanted.config = config;
    if (back) got.config = back->config;
    got.config.name = config.name;
    got.config.eosSources = config.eosSources;
    got.config.bosSource = config.bosSource;
    got.config.temperature = config.temperature;
    got.config.topP = config.topP;
    got.config.topKSampling = config.topKSampling;
    if (writeModelJson(wanted) == writeModelJson(got)) return text;
    return Status(Code::Unsupported, "a flat folder of a " + config.family +
                                         " model can only be made from its Hugging "
                                         "Face checkpoint, which has a config.json");
}

Result<DType> flatType(const ConvertOptions& options, const OpenedSource& source) {
    if (source.config.mla.kvRank > 0 || source.config.expertBias) {
        return Status(
            Code::Unsupported,
            "the flat layout cannot store all tensors of a " + source.config.family + " model",
            "Convert it to a container");
    }
    if (source.configText.empty()) COLIBRI_TRY(madeHfConfig(source.config).status());
    if (options.dtype && *options.dtype != DType::F16 && *options.dtype != DType::BF16) {
        return Status(Code::Unsupported, "the flat layout supports f16 or bf16, not " +
                                             std::string(dtypeName(*options.dtype)));
    }
    if (options.dtype) return *options.dtype;
    Result<Plan> own = makePlan(source, {});
    if (!own) return own.status();
    return own->sourceType == DType::BF16 ? DType::BF16 : DType::F16;
}

// generation_config.json with the special tokens of all source files, since the other files are not
// part of a flat folder.
Result<std::string> flatGeneration(const OpenedSource& source) {
    nlohmann::json generation = nlohmann::json::object();
    if (!source.generationText.empty()) {
        Result<nlohmann::json> json = parseJson(source.generationText, "generation_config.json");
        if (!json) return json.status();
        generation = std::move(*json);
    }
    if (!source.config.eosIds.empty()) generation["eos_token_id"] = source.config.eosIds;
    if (source.config.bosId >= 0) generation["bos_token_id"] = source.config.bosId;
    return generation.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Writes the files of a flat folder other than the weights.
Status writeFlatTexts(const fs::path& partial, const OpenedSource& source, const Plan& plan,
                      DType type, const DiskHooks& hooks) {
    std::string config = source.configText;
    if (config.empty()) {
        Result<std::string> made = madeHfConfig(plan.config);
        if (!made) return made.status();
        config = std::move(*made);
    }
    COLIBRI_TRY(writeSmallFile(partial / "config.json", config, hooks));
    Result<std::string> generation = flatGeneration(source);
    if (!generation) return generation.status();
    COLIBRI_TRY(writeSmallFile(partial / "generation_config.json", *generation, hooks));
    return writeSmallFile(partial / kFlatFile, flatDescription(type), hooks);
}

// Size of the files other than the weights.
int64_t bytesOfTexts(const ConvertOptions& options, const OpenedSource& source, const Plan& plan) {
    int64_t bytes = int64_t(writeModelJson(containerOf(source, plan)).size());
    for (const auto& [name, content] : source.extraFiles) bytes += int64_t(content.size());
    if (options.routerTable) {
        const ModelConfig& c = plan.config;
        return bytes + c.vocabSize * c.moeLayerCount() * c.topK * int64_t(sizeof(uint16_t));
    }
    std::error_code error;
    const auto table = fs::file_size(source.routerTable, error);
    return error ? bytes : bytes + int64_t(table);
}

// Adds to a disk-full error how much space is missing.
Status withSpace(const Status& status, const fs::path& folder, int64_t missing,
                 const DiskHooks& hooks) {
    if (status.code() != Code::NoSpace) return status;
    return Status(Code::NoSpace,
                  status.message() + "; " + formatGiB(double(missing)) +
                      " were still to be written, but only " +
                      formatGiB(double(std::max<int64_t>(freeBytes(folder, hooks), 0))) +
                      " were free",
                  status.hint());
}

// One conversion, from the checked options to the finished folder.
class Conversion {
public:
    Conversion(const ConvertOptions& options, const ProgressFn& progress, const CancelFlag* cancel,
               const DiskHooks& hooks)
        : m_options(options), m_progress(progress), m_cancel(cancel), m_hooks(hooks) {}

    Result<ContainerInfo> run() {
        COLIBRI_TRY(openAndPlan());
        COLIBRI_TRY(resume());
        const Status status = writeAll();
        if (!status.ok()) {
            if (!m_keepPartial) removePartial();
            return status;
        }
        if (!flat()) return openContainer(m_target);
        ContainerInfo info = containerOf(m_source, m_plan);
        info.dir = m_target;
        return info;
    }

private:
    bool flat() const { return m_options.layout == ConvertLayout::Flat; }

    Status openAndPlan() {
        Result<fs::path> target = checkTarget(m_options.target);
        if (!target) return target.status();
        m_target = std::move(*target);
        if (m_progress) m_progress({"Reading the checkpoint", 0, 0});
        Result<OpenedSource> source = openSource(m_options.source, m_options.chatTemplate);
        if (!source) return source.status();
        m_source = std::move(*source);
        if (!m_options.name.empty()) m_source.config.name = printable(m_options.name);
        COLIBRI_TRY(checkTexts(m_options.source, m_source));
        std::optional<DType> dtype = m_options.dtype;
        if (flat()) {
            if (!m_options.types.empty())
                return {Code::InvalidArgument, "the flat layout has one type for all matrices"};
            Result<DType> type = flatType(m_options, m_source);
            if (!type) return type.status();
            m_flatType = *type;
            dtype = m_flatType;
        }
        Result<Plan> plan = makePlan(m_source, dtype, m_options.types);
        if (!plan) return plan.status();
        m_plan = std::move(*plan);
        for (const std::string& note : notesOf(m_source))
            if (m_options.onNote) m_options.onNote(note);
        return {};
    }

    // Resumes in the partial folder of an earlier run, or creates one.
    Status resume() {
        m_partial = partialFolderOf(m_target);
        Result<Journal> journal = enterPartial(m_partial, journalKey(m_options, m_source, m_plan));
        if (!journal) return journal.status();
        m_journal.emplace(std::move(*journal));
        const WeightWriter::Parts parts{m_source, m_plan,     m_partial, *m_journal,
                                        m_hooks,  m_progress, m_cancel};
        if (flat()) {
            m_writer = std::make_unique<FlatWriter>(parts, m_flatType, hfNaming());
        } else {
            m_writer = std::make_unique<ContainerWriter>(parts);
        }
        return {};
    }

    Status writeAll() {
        const bool fresh = m_writer->bytesDone() == 0;
        const auto missing = [&] { return m_writer->bytesTotal() - m_writer->bytesDone(); };
        Status status = checkSpace(m_partial, missing() + bytesOfTexts(m_options, m_source, m_plan),
                                   m_writer->files() + kSmallFiles, m_hooks);
        m_keepPartial = !fresh;  // earlier work is kept until there is space
        if (!status.ok()) return status;
        status = m_writer->write();
        if (status.ok())
            status = addRouterTable(m_partial, m_options, m_source, m_plan, m_progress, m_cancel);
        if (status.ok()) status = writeTexts();
        if (status.ok()) status = moveToTarget(m_partial, m_target, *m_journal);
        // The next run resumes a conversion that was interrupted, or that is complete except for
        // its final name.
        m_keepPartial = (status.code() == Code::NoSpace && !fresh) ||
                        status.code() == Code::Cancelled || status.code() == Code::InvalidArgument;
        return withSpace(status, m_partial, missing(), m_hooks);
    }

    // Writes the files other than the weights.
    Status writeTexts() {
        if (flat()) {
            COLIBRI_TRY(writeFlatTexts(m_partial, m_source, m_plan, m_flatType, m_hooks));
        } else {
            COLIBRI_TRY(writeSmallFile(m_partial / kModelFile,
                                       writeModelJson(containerOf(m_source, m_plan)), m_hooks));
        }
        for (const auto& [name, content] : m_source.extraFiles) {
            const fs::path folder = (m_partial / name).parent_path();
            std::error_code error;
            fs::create_directories(folder, error);
            if (error) return systemError("cannot create", folder, error.value());
            COLIBRI_TRY(writeSmallFile(m_partial / name, content, m_hooks));
        }
        return {};
    }

    void removePartial() {
        std::error_code error;
        fs::remove_all(m_partial, error);
    }

    const ConvertOptions& m_options;
    const ProgressFn& m_progress;
    const CancelFlag* const m_cancel;
    const DiskHooks& m_hooks;
    fs::path m_target, m_partial;
    OpenedSource m_source;
    Plan m_plan;
    DType m_flatType = DType::F16;  // of the flat layout
    std::optional<Journal> m_journal;
    std::unique_ptr<WeightWriter> m_writer;
    bool m_keepPartial = false;  // after an error, for the next run
};

}  // namespace

Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel, const DiskHooks& hooks) {
    return Conversion(options, progress, cancel, hooks).run();
}

Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel) {
    return convertModel(options, progress, cancel, DiskHooks{});
}

}  // namespace colibri
