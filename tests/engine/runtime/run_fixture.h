// SPDX-License-Identifier: GPL-3.0-or-later
// Models and requests for the engine's tests.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/runtime/engine.h"

namespace colibri::test {

// A folder under the system's temporary directory, removed at the end of the process.
std::filesystem::path scratchFolder();

// A checkpoint, below tests/golden unless its path is absolute, converted to a container in
// scratchFolder(). Converted once per process, name and type.
std::filesystem::path convertedModel(const std::filesystem::path& source, DType type = DType::F32);
// tests/golden/models/NAME converted to a container (once per process and type).
std::filesystem::path goldenModel(const std::string& name, DType type = DType::F32);
// The same for tests/golden/gguf/NAME.gguf.
std::filesystem::path goldenGguf(const std::string& name, DType type = DType::F32);
nlohmann::json goldenGgufIndex();
nlohmann::json goldenExpected(const nlohmann::json& indexEntry);
nlohmann::json goldenIndex();

// A container with random weights, written directly: q8_0 experts, no tokenizer.
struct RandomShape {
    int64_t layers = 4, hidden = 64, heads = 4, kvHeads = 2, headDim = 32;
    int64_t experts = 16, topK = 4, expertSize = 64, vocab = 300, context = 2048;
    DType type = DType::Q8_0;
};
std::filesystem::path randomModel(const RandomShape& shape = {});

using Knobs = std::vector<std::pair<KnobId, int64_t>>;
KnobValues knobValues(const Knobs& knobs);
// Loads a model, or throws std::runtime_error with the status.
std::unique_ptr<Engine> load(const std::filesystem::path& model, const Knobs& knobs = {},
                             std::optional<Isa> isa = {});

// A request whose result is awaited.
class Pending {
public:
    Pending(Engine& engine, Request request);
    const Status& submitted() const { return m_submitted; }
    uint64_t id() const { return m_id; }
    RequestResult& wait();
    bool done() const;
    size_t tokens() const;         // so far
    std::string streamed() const;  // text received so far

private:
    struct State;
    std::shared_ptr<State> m_state;
    Status m_submitted;
    uint64_t m_id = 0;
};

Request greedyRequest(std::vector<int32_t> prompt, int tokens);
std::vector<int32_t> generate(Engine& engine, std::vector<int32_t> prompt, int tokens);
std::vector<int32_t> somePrompt(int count, int64_t vocab, uint64_t seed = 1);

}  // namespace colibri::test
