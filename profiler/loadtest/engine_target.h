// SPDX-License-Identifier: Apache-2.0
// The target of a load test on an engine in this process.
#pragma once

#include <functional>

#include "engine/runtime/engine.h"
#include "profiler/loadtest/load_run.h"

namespace colibri {

class EngineTarget final : public LoadTarget {
public:
    // `engine` must outlive this. `model`: sampling and limits of every request; its prompt is
    // ignored. `onToken` is called for each token, on the engine's thread.
    EngineTarget(Engine& engine, Request model, std::function<void()> onToken = {})
        : m_engine(engine), m_model(std::move(model)), m_onToken(std::move(onToken)) {}

    LoadReply send(const LoadPrompt& prompt, const CancelFlag& cancel) override;

private:
    Engine& m_engine;
    const Request m_model;
    const std::function<void()> m_onToken;
};

}  // namespace colibri
