// SPDX-License-Identifier: GPL-3.0-or-later
// The sampling settings, stored with the program's settings, and the popover that edits them. GUI
// thread only.
#pragma once

#include <QStringList>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/chat/sampling_presets.h"
#include "app/workbench/widgets/overlay.h"
#include "app/workbench/widgets/slider_row.h"

class QCheckBox;
class QVBoxLayout;

namespace colibri::ui {

class IconButton;
class Segment;
class Select;

struct ChatSettings {
    Sampling sampling = chatSampling({});
    int maxTokens = kChatMaxTokens;
    QStringList stops;
    bool randomSeed = false;             // every reply gets a new seed
    Overflow overflow = Overflow::Stop;  // for a chat that is longer than the context
    QStringList templateArgs;            // each a valid "name=JSON"

    Sampling drawn() const;   // with the seed of the next reply
    QString summary() const;  // "temp 0.7, top-p 0.95, seed 42"
    // As options of colibri chat: "--temperature 0.7 --top-p 0.95 --seed 42 --max-tokens 512".
    QString options() const;
    // Only values that the user changed are stored; all others are the defaults of the current
    // model.
    static ChatSettings load(const ChatSettings& defaults);
    void store(const ChatSettings& defaults) const;
    nlohmann::ordered_json templateVariables() const;  // null: none
};

class SamplingPanel : public Popover {
    Q_OBJECT

public:
    explicit SamplingPanel(QWidget* window);
    void setContextLength(int64_t tokens);  // 0 = no model
    // The values that the model recommends, if any. Call it before setSettings().
    void setRecommended(const std::optional<Sampling>& sampling);
    void setSettings(const ChatSettings& settings, const ChatSettings& defaults);
    const ChatSettings& settings() const { return m_settings; }
    const ChatSettings& defaults() const { return m_defaults; }
    QSize sizeHint() const override;
    Select* preset() const { return m_preset; }  // placeholder "Custom": the values match no preset
    IconButton* savePresetButton() const { return m_savePreset; }
    IconButton* removePresetButton() const { return m_removePreset; }
    QLineEdit* presetName() const { return m_presetName; }
    SliderRow* temperature() const { return m_temperature; }
    SliderRow* maxTokens() const { return m_maxTokens; }
    QCheckBox* randomSeed() const { return m_random; }
    Segment* overflow() const { return m_overflow; }
    // Names of the chat templates. The entry "Edit..." follows them.
    void setTemplates(const QStringList& names, int current);
    Select* chatTemplate() const { return m_template; }
    QLineEdit* templateArgs() const { return m_templateArgs; }
    Note* templateNote() const { return m_templateNote; }

signals:
    void changed();
    void templateChosen(int index);  // the index after the last name: edit

private:
    SliderRow* addRow(const QString& label, const QString& unit, int scale, int decimals,
                      SliderRange range, const QString& note);
    void addTexts(QVBoxLayout* column);
    void addTemplate(QVBoxLayout* column);
    void read();
    QLayout* makePresets();
    void showPresets();
    void choosePreset(int index);
    void namePreset();  // saves the values under the typed name
    void readTemplateArgs();
    void show(const ChatSettings& settings);

    ChatSettings m_settings, m_defaults;
    QWidget* m_content;
    SliderRow *m_temperature, *m_topK, *m_topP, *m_minP, *m_penalty, *m_seed, *m_maxTokens;
    std::optional<Sampling> m_recommended;
    QVector<SamplingPreset> m_presets;
    Select* m_preset;
    IconButton *m_savePreset, *m_removePreset;
    QLineEdit* m_presetName;  // visible while a preset is saved
    QCheckBox* m_random;
    Segment* m_overflow;
    Select* m_template;
    QLineEdit *m_stops, *m_templateArgs;
    Note* m_templateNote;  // error of the template arguments
    bool m_showing = false;
};

}  // namespace colibri::ui
