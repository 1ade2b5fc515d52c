#include <memory>
#include <ostream>

#include "gpuctl/doctor/gather.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

// As monitoring systems have them: 0 all is well, 1 a warning, 2 an error.
int exit_status(Severity severity) {
  if (severity == Severity::error) return 2;
  return severity == Severity::warning ? 1 : 0;
}

void print(std::ostream& out, const Finding& finding) {
  std::string severity(kSeverities[static_cast<std::size_t>(finding.severity)]);
  severity.resize(9, ' ');
  out << severity << finding.topic << ": " << finding.what;
  if (!finding.fix.empty()) out << ". Do: " << finding.fix;
  out << '\n';
}

boost::json::object to_json(const Finding& finding) {
  return {{"severity", kSeverities[static_cast<std::size_t>(finding.severity)]},
          {"topic", finding.topic},
          {"what", finding.what},
          {"fix", finding.fix}};
}

}  // namespace

Action declare_doctor(Arguments& arguments) {
  auto pid = std::make_shared<std::string>();
  const Argument given =
      arguments.add("PID", *pid, "A program that runs: what it really gets. Without it, this machine is looked at");
  arguments.footer("Exit status: 0 all is well, 1 there is a warning, 2 there is an error.");

  return [pid, given](Context& context) -> Outcome<int> {
    std::vector<Finding> findings;
    if (!given.given()) {
      findings = judge(see_machine(context));
    } else {
      const auto number = parse_integer(*pid);
      if (!number || *number <= 0) return usage("doctor: '" + *pid + "' is not a process id");
      findings = judge(see_program(context, *number));
    }
    if (context.json) {
      boost::json::array all;
      for (const Finding& finding : findings) all.push_back(to_json(finding));
      print_json(context, {{"findings", std::move(all)}});
    } else {
      for (const Finding& finding : findings) print(context.out, finding);
    }
    return exit_status(worst(findings));
  };
}

}  // namespace gpuctl::cli
