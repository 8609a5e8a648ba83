// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/knobs_panel.h"

#include <QLabel>
#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QSet>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/workbench/knobs/changes_list.h"
#include "app/workbench/knobs/knob_group.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/base/format.h"
#include "engine/telemetry/telemetry.h"

namespace colibri::ui {
namespace {

// A knob that is fixed at load: its value, and a link to the load page.
class AtLoadRow : public QWidget {
public:
    AtLoadRow(const KnobRow& row, std::function<void()> change) : m_row(row) {
        auto* line = new QHBoxLayout(this);
        line->setContentsMargins(0, 0, 0, 4);
        auto* label = new QLabel(row.label);
        label->setFixedHeight(24);
        m_value = new QLabel;
        m_value->setFont(type::mono());
        auto* link = new LinkButton("Reload", type::dense());
        link->setAccessibleName(QString("Change ") + row.label + " at the next load");
        QObject::connect(link, &QAbstractButton::clicked, this, [change] { change(); });
        line->addWidget(label);
        line->addStretch();
        line->addWidget(m_value);
        line->addWidget(link);
        setToolTip(row.help);
    }
    void setState(const KnobState& state) {
        QString text = knobText(m_row, state.effective);
        if (m_row.unit[0]) text += " " + unitFor(m_row.unit, state.effective);
        if (state.requested != state.effective)
            text += ", then " + knobText(m_row, state.requested);
        m_value->setText(text);
    }

private:
    const KnobRow& m_row;
    QLabel* m_value;
};

// Memory of the cache size; then the most important of: too small, preparing, filling.
QString cacheHint(const ModelFacts& model, const StoreStats& store, int64_t size) {
    const double bytes = double(size) * double(model.moeLayers) * double(model.expertBytes);
    QString hint = str(formatGiB(bytes)) + ". ";
    if (size < model.topK)
        hint += QString("Below the %1 experts of one token: no reuse.").arg(model.topK);
    else if (store.slotsToPrepare > 0)
        hint += QString("Preparing memory, %1 slots left.").arg(count(store.slotsToPrepare));
    else if (store.slotCount > 0)
        hint +=
            QString("%1 of %2 slots filled.").arg(count(store.slotsUsed), count(store.slotCount));
    return hint;
}

QString prefetchHint(const StoreStats& store, int64_t source) {
    if (store.prefetchIssued == 0)
        return source == int64_t(PrefetchSource::Off) ? "Experts are read when a token needs them."
                                                      : "No prefetches yet.";
    const auto share = [&](uint64_t part) {
        return str(formatPercent(double(part) / double(store.prefetchIssued), 0));
    };
    return QString("%1 ahead: %2 useful, %3 late, %4 wasted.")
        .arg(count(int64_t(store.prefetchIssued)), share(store.prefetchUseful),
             share(store.prefetchLate), share(store.prefetchWasted));
}

}  // namespace

KnobsPanel::KnobsPanel(QWidget* parent)
    : QWidget(parent), m_scroll(new QScrollArea), m_changes(new ChangesList) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_head = buildHead());
    column->addWidget(buildProfileRow());
    column->addWidget(m_scroll, 1);
    m_empty = new QLabel("No model loaded.\nLoad one to see its knobs here.");
    m_empty->setProperty("tone", "text3");
    m_empty->setFont(type::dense());
    m_empty->setAlignment(Qt::AlignCenter);
    column->addWidget(m_empty, 1);
    m_dense = new QLabel(
        "This model is dense: it has no experts, so the knobs of the expert cache, "
        "prefetch, reads and the router do not apply.");
    m_dense->setProperty("tone", "text3");
    m_dense->setFont(type::caption());
    m_dense->setWordWrap(true);
    m_dense->setContentsMargins(12, 8, 12, 8);
    m_dense->hide();
    m_clock.start();
    column->addWidget(m_changes);
    auto* content = new QWidget;
    m_groups = new QVBoxLayout(content);
    m_groups->setContentsMargins(0, 0, 0, 0);
    m_groups->setSpacing(0);
    m_groups->addWidget(m_dense);
    m_scroll->setWidget(content);
    m_scroll->setWidgetResizable(true);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    connect(m_scroll->verticalScrollBar(), &QScrollBar::rangeChanged, this, [this](int, int max) {
        for (int i = 0; i < m_groups->count(); ++i)
            if (auto* group = dynamic_cast<KnobGroup*>(m_groups->itemAt(i)->widget()))
                group->setBarShown(max > 0);
    });
    build();
    connect(m_changes, &ChangesList::undoWanted, this,
            [this](KnobId knob, int64_t value) { request(knob, value); });
    connect(&m_history, &KnobHistory::changed, this, [this] {
        m_undo->setEnabled(m_history.canUndo());
        m_redo->setEnabled(m_history.canRedo());
    });
    setSource(nullptr);
}

QWidget* KnobsPanel::buildHead() {
    auto* head = new PanelHead("Knobs");
    head->setIcon("knob");
    m_undo = new IconButton("undo", "Undo knob change");
    m_undo->describe("Undo knob change", "Ctrl+Z");
    m_redo = new IconButton("redo", "Redo knob change");
    m_redo->describe("Redo knob change", "Ctrl+Shift+Z");
    m_reset = new IconButton("reset", "Reset all knobs to their defaults");
    m_more = new IconButton("more", "Config files and profiles");
    for (IconButton* button : {m_undo, m_redo, m_reset, m_more}) head->addWidget(button);
    connect(m_undo, &QAbstractButton::clicked, this, &KnobsPanel::undo);
    connect(m_redo, &QAbstractButton::clicked, this, &KnobsPanel::redo);
    connect(m_reset, &QAbstractButton::clicked, this, &KnobsPanel::resetAll);
    connect(m_more, &QAbstractButton::clicked, this, &KnobsPanel::showMenu);
    return head;
}

QWidget* KnobsPanel::buildProfileRow() {
    auto* row = new QWidget;
    row->setFixedHeight(36);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(12, 0, 12, 0);
    line->setSpacing(8);
    auto* label = new QLabel("Profile");
    label->setFont(type::dense());
    label->setProperty("tone", "text2");
    m_profile = new Select;
    m_profile->setAccessibleName("Profile");
    m_profile->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_save = new Button("Save", Button::Kind::Default, Button::Size::Dense);
    m_save->setToolTip("Save the knobs as a named profile");
    line->addWidget(label);
    line->addWidget(m_profile, 1);
    line->addWidget(m_save);
    connect(m_profile, &QComboBox::activated, this, [this](int i) {
        if (i > 0) applyProfile(m_profile->itemText(i));
    });
    connect(m_save, &QAbstractButton::clicked, this, [this] {
        if (m_profiles.current().isEmpty())
            emit saveProfileWanted();
        else
            saveProfile(m_profiles.current());
    });
    return row;
}

void KnobsPanel::build() {
    std::vector<QString> order;
    QSet<QString> seen;
    for (const KnobRow& row : knobTable()) {
        const QString group = row.group;
        if (!seen.contains(group)) order.push_back(group);
        seen.insert(group);
    }
    for (const QString& group : order) {
        std::vector<const KnobRow*> rows;
        for (const KnobRow& row : knobTable())
            if (group == row.group) rows.push_back(&row);
        addGroup(group, rows);
    }
    m_groups->addStretch();
    updateProfileRow();
}

void KnobsPanel::addGroup(const QString& name, const std::vector<const KnobRow*>& rows) {
    auto* group = new KnobGroup(name, m_groupWidgets.empty(), 7);
    m_groupWidgets.emplace_back(name, group);
    for (const KnobRow* row : rows) {
        if (!row->live) {
            auto* fixed = new AtLoadRow(*row, [this] { emit loadPageWanted(); });
            m_atLoad.emplace_back(row->id, fixed);
            group->add(fixed);
            continue;
        }
        auto* control = new KnobControl(*row);
        const KnobId id = row->id;
        connect(control, &KnobControl::requested, this, &KnobsPanel::request);
        // These notes change while a reply is generated.
        if (id == KnobId::PrefetchSource) control->reserveNote(2);
        if (id == KnobId::ExpertCacheSize) control->reserveNote(1);
        m_controls.push_back(control);
        group->add(control);
    }
    m_groups->addWidget(group);
}

KnobControl* KnobsPanel::control(KnobId id) const {
    for (KnobControl* control : m_controls)
        if (control->row().id == id) return control;
    return nullptr;
}

void KnobsPanel::setHeadVisible(bool on) {
    m_head->setVisible(on);
}

void KnobsPanel::setSource(SessionSource* source) {
    m_source = source && source->model() ? source : nullptr;
    m_history.clear();
    m_dragStart.fill(std::nullopt);
    m_statesAt = -1;
    for (KnobControl* control : m_controls) {
        control->setEnabled(m_source != nullptr);
        control->setHint({});
        control->setEarlier({}, {});
        if (m_source)
            control->setLimits(m_source->knobLimits(control->row().id), m_source->model());
        control->setProblems(m_source ? problemsOf(control->row()) : QStringList());
    }
    showGroups();
    m_scroll->setVisible(m_source != nullptr);
    m_empty->setVisible(m_source == nullptr);
    m_profile->setEnabled(m_source != nullptr);
    m_save->setEnabled(m_source != nullptr);
    m_reset->setEnabled(m_source != nullptr);
    m_undo->setEnabled(false);
    m_redo->setEnabled(false);
    m_requestedAt.fill(-1);
    for (const KnobRow& row : knobTable())
        if (m_source) showState(row.id, m_source->knobState(row.id));
    m_changes->setSnapshot(nullptr);
}

// A dense model has no knobs of experts; one line says so.
void KnobsPanel::showGroups() {
    const bool dense = m_source && m_source->model()->isDense();
    m_dense->setVisible(dense);
    const auto applies = [&](const KnobRow& row) { return !dense || !row.ofExperts; };
    for (const auto& [name, group] : m_groupWidgets)
        group->setVisible(std::ranges::any_of(
            knobTable(), [&](const KnobRow& row) { return name == row.group && applies(row); }));
    for (KnobControl* one : m_controls) one->setVisible(applies(one->row()));
}

QStringList KnobsPanel::problemsOf(const KnobRow& row) const {
    const auto problem = [&](int64_t value) { return str(m_source->knobProblem(row.id, value)); };
    if (row.choices.empty()) return {problem(m_source->knobState(row.id).requested)};
    QStringList problems;
    for (size_t i = 0; i < row.choices.size(); ++i) problems << problem(int64_t(i));
    return problems;
}

void KnobsPanel::showState(KnobId id, const KnobState& state) {
    if (KnobControl* knob = control(id)) knob->setState(state);
    for (const auto& [row, widget] : m_atLoad)
        if (row == id) static_cast<AtLoadRow*>(widget)->setState(state);
}

// A state that was recorded before the last request of a knob is older than it and is not shown.
void KnobsPanel::updateStates(const Snapshot& snapshot) {
    for (const KnobRow& row : knobTable()) {
        if (snapshot.knobsAt >= m_requestedAt[size_t(row.id)])
            showState(row.id, snapshot.knob(row.id));
    }
}

void KnobsPanel::tick(const std::shared_ptr<const Snapshot>& newest) {
    if (!m_source || !newest || !isVisible()) return;
    m_changes->setPanelHeight(height());
    m_changes->setSnapshot(newest.get());
    if (newest->knobsAt == m_statesAt) return;  // hints change as seldom, so that they can be read
    m_statesAt = newest->knobsAt;
    updateStates(*newest);
    updateHints(*newest);
    updateProfileRow();
}

void KnobsPanel::updateHints(const Snapshot& snapshot) {
    if (KnobControl* cache = control(KnobId::ExpertCacheSize))
        cache->setHint(cacheHint(*m_source->model(), snapshot.store, cache->shownValue()));
    if (KnobControl* source = control(KnobId::PrefetchSource))
        source->setHint(prefetchHint(snapshot.store, source->shownValue()));
    if (KnobControl* link = control(KnobId::LinkLimit))
        link->setHint("Emulates a slower disk or bus; a badge is shown while set.");
    for (KnobControl* knob : m_controls) showEarlier(knob, snapshot);
}

// Marks earlier values with a known effect on the slider: the newest three.
void KnobsPanel::showEarlier(KnobControl* knob, const Snapshot& snapshot) {
    QVector<int64_t> values;
    QStringList texts;
    for (size_t i = snapshot.markers.size(); i-- > 0 && values.size() < 3;) {
        const Marker& marker = snapshot.markers[i];
        if (marker.kind != Marker::Kind::Knob || marker.knob != knob->row().id) continue;
        if (marker.effect != Marker::Effect::Known || values.contains(marker.from)) continue;
        if (marker.from == knob->shownValue()) continue;
        values << marker.from;
        const EffectLook look = effectLook(marker);
        texts << clockText(marker.t, 0) + "  " + typographic(str(marker.label)) + "\n" + look.text +
                     ", " + look.interval;
    }
    knob->setEarlier(values, texts);
}

void KnobsPanel::request(KnobId id, int64_t value, bool final) {
    if (!m_source) return;
    auto& start = m_dragStart[size_t(id)];
    const bool dragged = start.has_value();
    const int64_t now = m_source->knobState(id).requested;
    if (!start) start = now;
    if (now != value || (final && dragged)) {
        m_source->setKnob(id, value, final);
        m_requestedAt[size_t(id)] = m_source->sessionTime(monotonicNs());
    }
    if (!final) return;
    if (!m_adjusting)
        m_history.push({id, *start, value}, double(m_clock.elapsed()) / 1000, !dragged);
    start.reset();
    showState(id, m_source->knobState(id));
    updateProfileRow();
}

void KnobsPanel::undo() {
    if (m_source && m_history.canUndo()) applyTogether(m_history.undo(), false);
}

void KnobsPanel::redo() {
    if (m_source && m_history.canRedo()) applyTogether(m_history.redo(), true);
}

void KnobsPanel::applyTogether(const KnobStep& changes, bool forward) {
    m_adjusting = true;
    for (const KnobChange& change : changes)
        request(change.knob, forward ? change.to : change.from);
    m_adjusting = false;
}

void KnobsPanel::resetAll() {
    if (!m_source) return;
    KnobStep changes;
    for (KnobControl* control : m_controls) {
        const KnobId id = control->row().id;
        changes.push_back(
            {id, m_source->knobState(id).requested, m_source->knobLimits(id).defaultValue});
    }
    applyTogether(changes, true);
    m_history.pushTogether(std::move(changes));
}

void KnobsPanel::updateProfileRow() {
    QStringList entries{"none"};
    entries << m_profiles.names();
    QStringList shown;
    for (int i = 0; i < m_profile->count(); ++i) shown << m_profile->itemText(i);
    if (entries != shown) {
        m_profile->clear();
        m_profile->addItems(entries);
    }
    const QString current = m_profiles.current();
    const int index = std::max(0, int(entries.indexOf(current)));
    if (m_profile->currentIndex() != index) m_profile->setCurrentIndex(index);
    const QStringList differences = profileDifferences();
    m_profile->setSuffix(differences.isEmpty() ? "" : "changed");
    m_profile->setToolTip(differences.join('\n'));
}

void KnobsPanel::showMenu() {
    QMenu menu;
    menu.addAction("Save as profile...", this, [this] { emit saveProfileWanted(); });
    if (!m_profiles.current().isEmpty()) {
        const QString current = m_profiles.current();
        menu.addAction("Rename profile " + current + "...", this,
                       [this, current] { emit renameProfileWanted(current); });
        QMenu* compare = menu.addMenu("Compare with profile " + current);
        const QStringList differences = profileDifferences();
        for (const QString& line : differences) compare->addAction(line)->setEnabled(false);
        if (differences.isEmpty()) compare->addAction("No difference")->setEnabled(false);
        menu.addAction("Delete profile " + current, this, [this] {
            const QString name = m_profiles.current();
            const Status status = m_profiles.remove(name);
            if (!status.ok()) emit failed("The profile was not deleted", str(status.text()));
            updateProfileRow();
        });
    }
    menu.addSeparator();
    menu.addAction("Export config...", this, [this] { emit exportWanted(); });
    menu.addAction("Import config...", this, [this] { emit importWanted(); });
    for (QAction* action : menu.actions()) action->setEnabled(m_source != nullptr);
    menu.exec(m_more->mapToGlobal(QPoint(0, m_more->height())));
}

void KnobsPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
