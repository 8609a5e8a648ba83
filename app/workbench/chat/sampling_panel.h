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
    Sampling sampling = chatSampling({});
    int maxTokens = kChatMaxTokens;
    QStringList stops;
    bool randomSeed = false;             // every reply draws a seed of its own
    Overflow overflow = Overflow::Stop;  // a chat that is longer than the context
    QStringList templateArgs;            // each "name=JSON", sound

    Sampling drawn() const;              // with the seed of the next reply
    QString summary() const;             // "temp 0.7, top-p 0.95, seed 42"
    // The same for colibri chat: "--temperature 0.7 --top-p 0.95 --seed 42 --max-tokens 512".
    QString options() const;
    // What the user has set; all else is as the model in use has it, and follows the next model.
    static ChatSettings load(const ChatSettings& defaults);
    void store(const ChatSettings& defaults) const;
    nlohmann::ordered_json templateVariables() const;   // null: none
};

class SamplingPanel : public Popover {
    Q_OBJECT

public:
    explicit SamplingPanel(QWidget* window);
    void setContextLength(int64_t tokens);   // 0 = no model
    void setSettings(const ChatSettings& settings, const ChatSettings& defaults);
    const ChatSettings& settings() const { return m_settings; }
    const ChatSettings& defaults() const { return m_defaults; }
    QSize sizeHint() const override;
    SliderRow* temperature() const { return m_temperature; }
    SliderRow* maxTokens() const { return m_maxTokens; }
    QCheckBox* randomSeed() const { return m_random; }
    Segment* overflow() const { return m_overflow; }
    QLineEdit* templateArgs() const { return m_templateArgs; }
    Note* templateNote() const { return m_templateNote; }

signals:
    void changed();

private:
    SliderRow* addRow(const QString& label, const QString& unit, int scale, int decimals,
                      SliderRange range, const QString& note);
    void read();
    void readTemplateArgs();
    void show(const ChatSettings& settings);

    ChatSettings m_settings, m_defaults;
    QWidget* m_content;
    SliderRow *m_temperature, *m_topK, *m_topP, *m_minP, *m_penalty, *m_seed, *m_maxTokens;
    QCheckBox* m_random;
    Segment* m_overflow;
    QLineEdit *m_stops, *m_templateArgs;
    Note* m_templateNote;                // what is wrong with the arguments
    bool m_showing = false;
};

}  // namespace colibri::ui
