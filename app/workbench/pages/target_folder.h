// SPDX-License-Identifier: GPL-3.0-or-later
// The target folder of a new model: its field, and a note with the size of the model, free space,
// and problems. Files of an earlier attempt can be discarded. Checks the disk on another thread;
// functions are for the GUI thread.
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
    using Plan = std::function<Result<ContainerInfo>()>;  // the new model; any thread

    // `what`: "the converted model"; `after`: a sentence at the end of the note if there is no
    // problem.
    TargetFolder(const QString& what, const QString& after, QObject* parent);
    // Adds two rows: label, field and button in columns 0 to 2; the note.
    void addTo(QGridLayout* grid, int row);
    QString path() const { return m_edit->text().trimmed(); }
    QLineEdit* edit() const { return m_edit; }
    QString note() const { return m_note->text(); }
    Button* discardButton() const {
        return m_discard;
    }                                    // discards the files of a stopped conversion
    void suggest(const QString& path);   // unless the user edited the path
    void forget() { m_edited = false; }  // the edit of the user

    // Plans, and checks the disk. planned() follows if there is a plan, then changed().
    void look(Plan plan);
    bool ready() const { return m_ready; }  // checked, and the model can be written

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

// A choice of all weight types that have an encoder, followed by the texts in `more`.
Segment* weightTypeSegment(const QStringList& more = {});
std::optional<DType> weightType(const Segment& segment);  // nullopt: one of `more`

}  // namespace colibri::ui
