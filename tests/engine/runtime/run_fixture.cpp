// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/runtime/run_fixture.h"

#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>

#include "engine/base/file.h"
#include "engine/convert/converter.h"
#include "engine/model/layout.h"
#include "engine/model/model_json.h"

namespace colibri::test {

namespace fs = std::filesystem;

namespace {

void require(const Status& status) {
    if (!status.ok()) throw std::runtime_error(status.text());
}

struct Scratch {
    Scratch() : path(fs::temp_directory_path() / ("colibri-run-" + std::to_string(getpid()))) {
        fs::create_directories(path);
    }
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    fs::path path;
};

void writeBytes(const fs::path& path, const std::vector<std::byte>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    if (!file) throw std::runtime_error("cannot write " + path.string());
}

class RandomWeights {
public:
    std::vector<float> matrix(int64_t rows, int64_t cols) {
        std::vector<float> w(size_t(rows * cols));
        std::normal_distribution<float> normal(0, 1.0f / std::sqrt(float(cols)));
        for (float& v : w) v = normal(m_random);
        return w;
    }
    std::vector<float> norm(int64_t n) {
        std::vector<float> w(size_t(n), 0.0f);
        std::uniform_real_distribution<float> uniform(0.7f, 1.3f);
        for (float& v : w) v = uniform(m_random);
        return w;
    }

private:
    std::mt19937 m_random{7};
};

ModelConfig randomConfig(const RandomShape& s) {
    ModelConfig c;
    c.family = "qwen3_moe";
    c.name = "random";
    c.vocabSize = s.vocab;
    c.hiddenSize = s.hidden;
    c.numLayers = s.layers;
    c.numHeads = s.heads;
    c.numKvHeads = s.kvHeads;
    c.headDim = s.headDim;
    c.numExperts = s.experts;
    c.topK = s.topK;
    c.expertSize = s.expertSize;
    c.maxPositions = s.context;
    c.qkNorm = QkNorm::PerHead;
    c.rope.rotaryDim = int(s.headDim);
    c.routing.renorm = true;
    c.moeLayer.assign(size_t(s.layers), true);
    c.eosIds = {int32_t(s.vocab - 1)};
    return c;
}

}  // namespace

fs::path scratchFolder() {
    static Scratch scratch;
    return scratch.path;
}

namespace {

nlohmann::json readJson(const fs::path& path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
}

}  // namespace

fs::path convertedModel(const fs::path& source, DType type) {
    static std::map<std::string, fs::path> made;
    const std::string key = source.filename().string() + "-" + std::string(dtypeName(type));
    fs::path& path = made[key];
    if (path.empty()) {
        path = scratchFolder() / key;
        ConvertOptions options;
        options.source = fs::path(COLIBRI_GOLDEN_DIR) / source;
        options.target = path;
        options.dtype = type;
        require(convertModel(options, {}, nullptr).status());
    }
    return path;
}

nlohmann::json goldenIndex() {
    return readJson(fs::path(COLIBRI_GOLDEN_DIR) / "models" / "index.json");
}

nlohmann::json goldenGgufIndex() {
    return readJson(fs::path(COLIBRI_GOLDEN_DIR) / "gguf" / "index.json");
}

nlohmann::json goldenExpected(const nlohmann::json& entry) {
    return readJson(fs::path(COLIBRI_GOLDEN_DIR) / "models" / entry["expected"].get<std::string>());
}

fs::path goldenModel(const std::string& name, DType type) {
    return convertedModel(fs::path("models") / name, type);
}

fs::path goldenGguf(const std::string& name, DType type) {
    return convertedModel(fs::path("gguf") / (name + ".gguf"), type);
}

fs::path randomModel(const RandomShape& shape) {
    static int number = 0;
    const fs::path dir = scratchFolder() / ("random-" + std::to_string(number++));
    fs::create_directories(dir / "experts");
    ContainerInfo info;
    info.config = randomConfig(shape);
    info.expertType = shape.type;
    info.source = "test";
    info.fingerprint = "0123456789abcdef0123456789abcdef";
    require(checkConfig(info.config));
    RandomWeights random;
    for (const TensorSpec& spec : denseTensors(info.config)) {
        if (spec.optional) continue;
        TensorInfo t;
        t.name = spec.name;
        t.packed = spec.matrix;
        t.dtype = spec.matrix ? shape.type : DType::F32;
        t.rows = spec.rows;
        t.cols = spec.cols;
        info.tensors.push_back(t);
    }
    std::vector<std::byte> dense(size_t(layOutDense(info.tensors)));
    for (const TensorInfo& t : info.tensors) {
        const bool vector = !t.packed && t.rows == 1;
        const std::vector<float> w = vector ? random.norm(t.cols) : random.matrix(t.rows, t.cols);
        if (t.packed) {
            packRows(t.dtype, w.data(), t.rows, t.cols, dense.data() + t.offset);
        } else {
            std::memcpy(dense.data() + t.offset, w.data(), w.size() * 4);
        }
    }
    info.denseBytes = int64_t(dense.size());
    writeBytes(dir / kDenseFile, dense);
    const ModelConfig& c = info.config;
    for (int64_t l = 0; l < c.numLayers; ++l) {
        ExpertLayer layer = expertLayout(c, l, ExpertTypes::all(shape.type));
        layer.hashes.assign(size_t(c.numExperts), 0);
        std::vector<std::byte> bytes(size_t(layer.recordBytes * c.numExperts));
        for (int64_t e = 0; e < c.numExperts; ++e) {
            std::byte* record = bytes.data() + e * layer.recordBytes;
            const auto put = [&](int64_t offset, int64_t rows, int64_t cols) {
                packRows(shape.type, random.matrix(rows, cols).data(), rows, cols, record + offset);
            };
            put(layer.w1Offset, c.expertSize, c.hiddenSize);
            put(layer.w3Offset, c.expertSize, c.hiddenSize);
            put(layer.w2Offset, c.hiddenSize, c.expertSize);
        }
        writeBytes(dir / layer.file, bytes);
        info.expertBytes += int64_t(bytes.size());
        info.expertLayers.push_back(std::move(layer));
    }
    const std::string json = writeModelJson(info);
    require(writeFileAtomically(dir / kModelFile, json));
    return dir;
}

KnobValues knobValues(const Knobs& knobs) {
    KnobValues values;
    for (const auto& [id, value] : knobs) values[size_t(id)] = value;
    return values;
}

std::unique_ptr<Engine> load(const fs::path& model, const Knobs& knobs, std::optional<Isa> isa) {
    Result<std::unique_ptr<Engine>> engine =
        Engine::load({model, knobValues(knobs), isa}, {}, nullptr);
    require(engine.status());
    return std::move(*engine);
}

struct Pending::State {
    mutable std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    size_t tokens = 0;
    std::string text;
    RequestResult result;
};

Pending::Pending(Engine& engine, Request request) : m_state(std::make_shared<State>()) {
    RequestCallbacks callbacks;
    callbacks.onToken = [s = m_state](const GeneratedToken& token) {
        std::lock_guard lock(s->mutex);
        ++s->tokens;
        s->text += token.text;
        return true;
    };
    callbacks.onDone = [s = m_state](RequestResult result) {
        std::lock_guard lock(s->mutex);
        s->result = std::move(result);
        s->done = true;
        s->changed.notify_all();
    };
    Result<uint64_t> id = engine.submit(std::move(request), std::move(callbacks));
    m_submitted = id.status();
    if (id.ok()) m_id = *id;
}

RequestResult& Pending::wait() {
    require(m_submitted);
    std::unique_lock lock(m_state->mutex);
    m_state->changed.wait(lock, [this] { return m_state->done; });
    return m_state->result;
}

bool Pending::done() const {
    std::lock_guard lock(m_state->mutex);
    return m_state->done;
}

size_t Pending::tokens() const {
    std::lock_guard lock(m_state->mutex);
    return m_state->tokens;
}

std::string Pending::streamed() const {
    std::lock_guard lock(m_state->mutex);
    return m_state->text;
}

Request greedyRequest(std::vector<int32_t> prompt, int tokens) {
    Request request;
    request.prompt = std::move(prompt);
    request.maxTokens = tokens;
    request.ignoreEos = true;
    return request;
}

std::vector<int32_t> generate(Engine& engine, std::vector<int32_t> prompt, int tokens) {
    Pending pending(engine, greedyRequest(std::move(prompt), tokens));
    RequestResult& result = pending.wait();
    require(result.status);
    return result.tokens;
}

std::vector<int32_t> somePrompt(int count, int64_t vocab, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(int32_t(random() % uint64_t(vocab)));
    return ids;
}

}  // namespace colibri::test
