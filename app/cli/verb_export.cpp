// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "profiler/export/export.h"

namespace colibri::cli {

namespace {

struct ExportArgs {
    ExportOptions options;
    std::string session, output, format;
    double from = 0, to = -1;
    bool json = false;
};

std::string countsText(const ExportSummary& summary, ExportFormat format) {
    std::string text = formatGiB(double(summary.bytes));
    if (format == ExportFormat::Perfetto || format == ExportFormat::Chrome) {
        text += ", " + formatCount(summary.slices) + " slices, " + formatCount(summary.flows) +
                " arrows, " + formatCount(summary.instants) + " instants";
    }
    if (format != ExportFormat::Html && format != ExportFormat::Markdown) {
        text += ", " + formatCount(summary.values) + " values of " +
                formatCount(int64_t(summary.series.size())) + " series";
    }
    return text;
}

constexpr int64_t kWorthAnEstimate = 16 << 20;  // bytes; smaller files take no time

int run(const ExportArgs& args) {
    ExportOptions options = args.options;
    options.session = args.session;
    options.output = args.output;
    options.format = *exportFormatFromName(args.format);
    options.from = args.from;
    if (args.to >= 0) options.to = args.to;
    ProgressLine progress;
    const Result<int64_t> estimate = estimateExport(options);
    if (!estimate.ok()) return fail(estimate.status());
    if (!args.json && *estimate >= kWorthAnEstimate)
        message("The file will have about " + formatGiB(double(*estimate)));
    const Result<ExportSummary> summary =
        exportSession(options, progress.function(), &interrupted());
    progress.finish();
    if (!summary.ok()) return fail(summary.status());
    if (args.json) {
        return outJson({{"session", args.session},
                        {"output", args.output},
                        {"format", args.format},
                        {"bytes", summary->bytes},
                        {"from_s", summary->from},
                        {"to_s", summary->to},
                        {"slices", summary->slices},
                        {"instants", summary->instants},
                        {"flows", summary->flows},
                        {"values", summary->values},
                        {"series", summary->series}});
    }
    message(args.output + ": " + countsText(*summary, options.format));
    return kOk;
}

}  // namespace

void addExport(Verbs& verbs) {
    auto args = std::make_shared<ExportArgs>();
    CLI::App* verb = verbs.add("export", "Export a session file as a trace, series or a report",
                               [args] { return run(*args); });
    verb->add_option("SESSION", args->session, "Session file (*.colibri-session)")->required();
    verb->add_option("--format", args->format,
                     "perfetto: trace for ui.perfetto.dev; chrome: trace event JSON; csv, json: "
                     "series; html, md: report")
        ->required()
        ->check(CLI::IsMember({"perfetto", "chrome", "csv", "json", "html", "md"}));
    verb->add_option("-o,--output", args->output, "File to write; must not exist")->required();
    addRange(*verb, args->from, args->to);
    verb->add_option("--series", args->options.series,
                     "Keys of series, separated by commas (default: all that have values); not "
                     "for reports")
        ->type_name("KEY,...")
        ->delimiter(',');
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
