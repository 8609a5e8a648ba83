// SPDX-License-Identifier: GPL-3.0-or-later
// The folder in which a model is made: its field, and a note under it that tells what the model
// will take of the disk and whether it can be written there. What an earlier attempt has left there
// can be discarded. Looks at the disk on another thread.
#pragma once

#include <QLineEdit>
#include <QPointer>
#include <functional>
#include <optional>

#include "app/workbench/platform/job.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/model/container.h"

class QGridLayout;

namespace colibri::ui {

class Button;
class Segment;

class TargetFolder : public QObject {
    Q_OBJECT

public:
    using Plan = std::function<Result<ContainerInfo>()>;  // what would be made; any thread

    // `what`: "the converted model"; `after`: a sentence that ends the note where all is well.
    TargetFolder(const QString& what, const QString& after, QObject* parent);
    // Two rows: label, field and button in columns 0 to 2; the note.
    void addTo(QGridLayout* grid, int row);
    QString path() const { return m_edit->text().trimmed(); }
    QLineEdit* edit() const { return m_edit; }
    QString note() const { return m_note->text(); }
    Button* discardButton() const {
        return m_discard;
    }                                    // of what a stopped conversion has left there
    void suggest(const QString& path);   // unless the user has named one
    void forget() { m_edited = false; }  // what the user has named

    // Plans and looks at the disk; ends in changed(), after planned() when there is a plan.
    void look(Plan plan);
    bool ready() const { return m_ready; }  // looked at, and the model can be written

signals:
    void edited();  // by the user
    void planned(const colibri::ContainerInfo& info);
    void changed();

private:
    struct Room;

    void choose();
    bool showRoom(const Room& room);
    void showPartial(int64_t bytes);
    void discard();

    QString m_what, m_after;
    QLineEdit* m_edit;
    Note* m_note;
    Button* m_discard;
    QPointer<Job> m_look, m_removal;
    bool m_edited = false, m_ready = false;
};

// The weight types that a model can be made with, in the order of the segment's choices, and
// whatever `more` adds after these.
Segment* weightTypeSegment(const QStringList& more = {});
std::optional<DType> weightType(const Segment& segment);  // nothing: one of `more`

}  // namespace colibri::ui
