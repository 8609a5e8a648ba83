// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/foreign.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDownloadAgain = "Download it again";
constexpr const char* kUseSafetensors =
    "Use the safetensors version of the model. Most repositories have one; in the transformers "
    "library, save_pretrained(DIR, safe_serialization=True) writes it";
constexpr int64_t kShortText = 4096;  // bytes of an error message that was saved as a file

struct Kind {
    const char* what;
    Code code;
    const char* remedy;
};
constexpr Kind kPointer = {"is a git-lfs pointer, not the file itself", Code::BadInput,
                           "Run git lfs pull in the repository, or download the file itself"};
constexpr Kind kHtml = {
    "is an HTML page: the download fetched a web page instead of the file", Code::BadInput,
    "Download it again; for a gated model, log in and accept its licence first"};
constexpr Kind kPickle = {"is a PyTorch pickle, which is not supported", Code::Unsupported,
                          kUseSafetensors};

struct Signature {
    std::string_view bytes;
    Kind kind;
};
constexpr Signature kSignatures[] = {
    {"version https://git-lfs.github.com/spec/", kPointer},
    {"GGUF", {"is a GGUF file", Code::BadInput, "Rename it to end in .gguf and open it again"}},
    {"lmgg", {"is a GGML file, the format before GGUF", Code::Unsupported, "Use a GGUF file"}},
    {"fmgg", {"is a GGML file, the format before GGUF", Code::Unsupported, "Use a GGUF file"}},
    {"tjgg", {"is a GGML file, the format before GGUF", Code::Unsupported, "Use a GGUF file"}},
    {std::string_view("PK\3\4", 4), kPickle},  // a zip archive: what torch.save writes
    {std::string_view("\x80\x02", 2), kPickle},
    {std::string_view("\x80\x03", 2), kPickle},
    {std::string_view("\x80\x04", 2), kPickle},
    {std::string_view("\x1f\x8b", 2), {"is a gzip archive", Code::BadInput, "Unpack it first"}},
    {std::string_view("\x28\xb5\x2f\xfd", 4),
     {"is a zstd archive", Code::BadInput, "Unpack it first"}},
    {std::string_view("7z\xbc\xaf", 4), {"is a 7z archive", Code::BadInput, "Unpack it first"}},
    {std::string_view("\x89HDF", 4),
     {"is an HDF5 file, which is not supported", Code::Unsupported, kUseSafetensors}},
};

bool isHtml(std::string_view start) {
    if (start.starts_with("\xef\xbb\xbf")) start.remove_prefix(3);
    start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
    std::string lower(start.substr(0, 16));
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    return lower.starts_with("<!doctype") || lower.starts_with("<html") ||
           lower.starts_with("<head") || lower.starts_with("<?xml");
}

bool isPlainText(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x20 || c == '\n' || c == '\r' || c == '\t';
    });
}

bool isSafetensors(std::string_view start) {
    return start.size() >= 9 && start[8] == '{' && start[5] == 0 && start[6] == 0 && start[7] == 0;
}

Status named(const fs::path& path, const Kind& kind) {
    return Status(kind.code, printable(path.string()) + " " + kind.what, kind.remedy);
}

struct Start {
    std::string bytes;
    int64_t fileBytes = 0;
};

Result<Start> readStart(const fs::path& path) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<int64_t> size = file->size();
    if (!size) return size.status();
    Start start{std::string(size_t(std::min<int64_t>(*size, kForeignBytes)), '\0'), *size};
    COLIBRI_TRY(file->readAt(0, std::as_writable_bytes(std::span(start.bytes))));
    return start;
}

}  // namespace

Status checkContent(std::string_view start, int64_t fileBytes, Expected expected,
                    const fs::path& path) {
    if (fileBytes == 0)
        return {Code::BadInput, printable(path.string()) + " is empty", kDownloadAgain};
    for (const Signature& signature : kSignatures) {
        if (!start.starts_with(signature.bytes)) continue;
        // Safetensors files begin with a length, which may look like another format.
        if (expected == Expected::Safetensors && isSafetensors(start)) return {};
        if (expected == Expected::Gguf && signature.bytes == "GGUF") return {};
        return named(path, signature.kind);
    }
    if (isHtml(start)) return named(path, kHtml);
    if (expected == Expected::Text) return {};
    if (expected == Expected::Gguf && isSafetensors(start)) {
        return named(path, {"is a safetensors file", Code::BadInput,
                            "Open its folder, which must contain config.json"});
    }
    if (fileBytes <= kShortText && isPlainText(start)) {
        return Status(Code::BadInput,
                      printable(path.string()) + " is a text file of " + formatCount(fileBytes) +
                          " bytes, not weights: \"" + printable(start.substr(0, 80)) + "\"",
                      kDownloadAgain);
    }
    return {};
}

Status checkContent(const fs::path& path, Expected expected) {
    Result<Start> start = readStart(path);
    if (!start) return start.status();
    return checkContent(start->bytes, start->fileBytes, expected, path);
}

bool isPickle(const fs::path& path) {
    constexpr std::string_view kEndings[] = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
    return std::find(std::begin(kEndings), std::end(kEndings), path.extension().string()) !=
           std::end(kEndings);
}

Status pickleError(const fs::path& path) {
    return named(path, kPickle);
}

Status notACheckpoint(const fs::path& path) {
    constexpr const char* kHint =
        "Expected a folder with config.json and .safetensors files, a folder of the Hugging Face "
        "cache, a .safetensors file, or a GGUF file";
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
        COLIBRI_TRY(checkContent(path, Expected::Gguf));
        if (isPickle(path)) return pickleError(path);
    }
    return Status(Code::BadInput, printable(path.string()) + ": not a checkpoint", kHint);
}

}  // namespace colibri
