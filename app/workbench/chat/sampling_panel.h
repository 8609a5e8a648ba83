// SPDX-License-Identifier: GPL-3.0-or-later
// How replies are sampled: the values, kept in the settings, and the popover that edits them.
#pragma once

#include <QStringList>

#include "app/workbench/session/session_source.h"
#include "app/workbench/widgets/slider_row.h"
#include "app/workbench/window/overlay.h"

class QCheckBox;

namespace colibri::ui {

class Segment;

struct ChatSettings {
    Sampling sampling{0.7f, 0, 0.95f, 0, 1, 42};
    int maxTokens = 512;
    QStringList stops;
    bool randomSeed = false;             // every reply draws a seed of its own
    Overflow overflow = Overflow::Stop;  // a chat that is longer than the context

    Sampling drawn() const;              // with the seed of the next reply
    QString summary() const;             // "temp 0.7, top-p 0.95, seed 42"
    // The same for colibri chat: "--temperature 0.7 --top-p 0.95 --seed 42 --max-tokens 512".
    QString options() const;
    static ChatSettings load();
    void store() const;
};

class SamplingPanel : public Popover {
    Q_OBJECT

public:
    explicit SamplingPanel(QWidget* window);
    void setContextLength(int64_t tokens);   // 0 = no model
    void setSettings(const ChatSettings& settings, const ChatSettings& defaults);
    const ChatSettings& settings() const { return m_settings; }
    QSize sizeHint() const override;
    SliderRow* temperature() const { return m_temperature; }
    SliderRow* maxTokens() const { return m_maxTokens; }
    QCheckBox* randomSeed() const { return m_random; }
    Segment* overflow() const { return m_overflow; }

signals:
    void changed();

private:
    SliderRow* addRow(const QString& label, const QString& unit, int scale, int decimals,
                      SliderRange range, const QString& note);
    void read();
    void show(const ChatSettings& settings);

    ChatSettings m_settings, m_defaults;
    QWidget* m_content;
    SliderRow *m_temperature, *m_topK, *m_topP, *m_minP, *m_penalty, *m_seed, *m_maxTokens;
    QCheckBox* m_random;
    Segment* m_overflow;
    QLineEdit* m_stops;
    bool m_showing = false;
};

}  // namespace colibri::ui
