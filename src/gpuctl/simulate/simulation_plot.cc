#include <algorithm>
#include <cstdio>

#include "gpuctl/simulate/simulation.h"

namespace gpuctl::cli {

namespace {

constexpr double kWidth = 720, kPanel = 90, kHeader = 40, kBarsWidth = 170, kLeft = 90;

std::string number(double v, const char* format = "%.2f") {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

std::string escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      safe += c;
  }
  return safe;
}

/// Hues differ by the golden angle, so that neighbours never look alike.
std::string colour(std::size_t i) {
  return "hsl(" + number(static_cast<double>((i * 137) % 360), "%.0f") + ",60%," + (i % 2 ? "45%" : "60%") + ")";
}

std::string text_at(double x, double y, const std::string& text, const char* style = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + style + ">" + escape(text) + "</text>\n";
}

std::string rectangle(double x, double y, double w, double h, const std::string& fill) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(w) + "\" height=\"" + number(h) +
         "\" fill=\"" + fill + "\"/>\n";
}

}  // namespace

std::string plot(const sched::Workload& workload, std::span<const PolicySummary> summaries) {
  double antt = 0, dntt = 0, stp = 0, longest = 0;
  for (const PolicySummary& s : summaries) {
    antt = std::max(antt, s.antt.mean);
    dntt = std::max(dntt, s.dntt.mean);
    stp = std::max(stp, s.stp.mean);
    longest = std::max(longest, s.bucket_ms * static_cast<double>(s.timeline.empty() ? 0 : s.timeline[0].size()));
  }
  const double bars = kLeft + kWidth + 20;
  const double bottom = kHeader + static_cast<double>(summaries.size()) * (kPanel + 16);
  const double height = bottom + 20 + 14 * static_cast<double>(std::min<std::size_t>(workload.applications.size(), 20));
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(bars + kBarsWidth, "%.0f") +
                    "\" height=\"" + number(height, "%.0f") + "\" font-family=\"sans-serif\" font-size=\"11\">\n" +
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += text_at(kLeft, 16, workload.title, "font-size=\"14\"");
  svg += text_at(kLeft, 32, "share of the devices, first seed, 0 to " + number(longest) + " ms");
  svg += text_at(bars, 32, "means over the seeds");

  for (std::size_t p = 0; p < summaries.size(); ++p) {
    const PolicySummary& s = summaries[p];
    const double top = kHeader + static_cast<double>(p) * (kPanel + 16);
    svg += text_at(4, top + kPanel / 2, s.policy);
    svg += rectangle(kLeft, top, kWidth, kPanel, "#eee");
    const double step = longest > 0 ? s.bucket_ms / longest * kWidth : 0;
    for (std::size_t b = 0; !s.timeline.empty() && b < s.timeline[0].size(); ++b) {
      double base = top + kPanel;
      for (std::size_t a = 0; a < s.timeline.size(); ++a) {
        const double h = s.timeline[a][b] * kPanel;
        if (h < 0.05) continue;
        base -= h;
        svg += rectangle(kLeft + static_cast<double>(b) * step, base, step, h, colour(a));
      }
    }
    const struct {
      const char* name;
      double value, most;
    } metrics[] = {{"ANTT", s.antt.mean, antt}, {"DNTT", s.dntt.mean, dntt}, {"STP", s.stp.mean, stp}};
    for (int m = 0; m < 3; ++m) {
      const double y = top + 8 + m * 26;
      svg += rectangle(bars + 40, y, metrics[m].most > 0 ? metrics[m].value / metrics[m].most * 80 : 0, 14, "#678");
      svg += text_at(bars, y + 11, metrics[m].name);
      svg += text_at(bars + 126, y + 11, number(metrics[m].value));
    }
  }
  for (std::size_t a = 0; a < std::min<std::size_t>(workload.applications.size(), 20); ++a) {
    svg += rectangle(kLeft, bottom + 8 + 14 * static_cast<double>(a), 10, 10, colour(a));
    svg += text_at(kLeft + 16, bottom + 17 + 14 * static_cast<double>(a), workload.applications[a].name);
  }
  return svg + "</svg>\n";
}

}  // namespace gpuctl::cli
