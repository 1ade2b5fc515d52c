// Checks io.gpuctl.varlink with a small parser of the Varlink grammar and against the code that uses its names.
#include "ipc/interface.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "ipc/codec.h"

namespace gpuctl::ipc {
namespace {

using FieldTypes = std::map<std::string, std::string>;

struct Parsed {
  std::string name;
  std::map<std::string, FieldTypes> types;
  std::map<std::string, std::pair<FieldTypes, FieldTypes>> methods;
  std::map<std::string, FieldTypes> errors;
};

/// Recursive descent over the grammar of Varlink interface files, as far as needed here: no enums, no anonymous
/// structs. Throws the error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Parsed parse() {
    Parsed parsed;
    expect("interface");
    parsed.name = word();
    while (!at_end()) {
      const std::string keyword = word();
      const std::string name = word();
      if (std::isupper(static_cast<unsigned char>(name[0])) == 0) throw std::runtime_error("lower case: " + name);
      bool fresh = false;
      if (keyword == "type") {
        fresh = parsed.types.emplace(name, fields()).second;
      } else if (keyword == "error") {
        fresh = parsed.errors.emplace(name, fields()).second;
      } else if (keyword == "method") {
        FieldTypes in = fields();
        expect("->");
        fresh = parsed.methods.emplace(name, std::pair(in, fields())).second;
      } else {
        throw std::runtime_error("unexpected " + keyword);
      }
      if (!fresh) throw std::runtime_error("twice: " + name);
    }
    return parsed;
  }

 private:
  void skip() {
    while (!text_.empty() && (std::isspace(static_cast<unsigned char>(text_[0])) != 0 || text_[0] == '#'))
      text_.remove_prefix(text_[0] == '#' ? std::min(text_.find('\n'), text_.size()) : 1);
  }
  bool at_end() {
    skip();
    return text_.empty();
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token))
      throw std::runtime_error("expected " + std::string(token) + " at " + std::string(text_.substr(0, 20)));
  }
  std::string word() {
    skip();
    std::size_t n = 0;
    while (n < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[n])) != 0 || text_[n] == '_' || text_[n] == '.'))
      ++n;
    if (n == 0) throw std::runtime_error("expected a name at " + std::string(text_.substr(0, 20)));
    std::string result(text_.substr(0, n));
    text_.remove_prefix(n);
    return result;
  }
  FieldTypes fields() {
    FieldTypes list;
    expect("(");
    if (take(")")) return list;
    do {
      const std::string name = word();
      expect(":");
      std::string type = take("?") ? "?" : "";
      if (take("[]")) type += "[]";
      type += word();
      if (!list.emplace(name, type).second) throw std::runtime_error("twice: " + name);
    } while (take(","));
    expect(")");
    return list;
  }

  std::string_view text_;
};

const Parsed& gpuctl_interface() {
  static const Parsed parsed = Parser(interface_text()).parse();
  return parsed;
}

/// The Varlink types a JSON value may stand for.
std::set<std::string> types_of(const boost::json::value& value) {
  if (value.is_string()) return {"string"};
  if (value.is_bool()) return {"bool"};
  if (value.is_int64()) return {"int"};
  if (value.is_double()) return {"float"};
  if (value.is_object()) return {"SliceTotals"};
  if (!value.is_array()) return {};
  std::set<std::string> lists;
  for (const auto& item : value.get_array())
    for (const std::string& type : types_of(item)) lists.insert("[]" + type);
  // Objects in arrays are of a named type, checked by that type's own test.
  return lists.empty() ? std::set<std::string>{"[]Slice",       "[]Client",
                                               "[]Device",      "[]ClientUsage",
                                               "[]KernelPoint", "[]Fairness",
                                               "[]SliceOnGpu",  "[]Latency",
                                               "[]Pressure",    "[]MeasuredIsolation",
                                               "[]Room",        "[]LatencyBucket",
                                               "[]Mps"}
                       : lists;
}

void expect_same_fields(boost::json::object object, const FieldTypes& types, const std::string& what) {
  for (const auto& field : object) {
    const std::string name(field.key().data(), field.key().size());
    ASSERT_TRUE(types.contains(name)) << what << '.' << name << " is not in the interface";
    std::string type = types.at(name);
    if (type.starts_with('?')) type.erase(0, 1);
    EXPECT_TRUE(types_of(field.value()).contains(type)) << what << '.' << name << ": " << type;
  }
  EXPECT_EQ(object.size(), types.size()) << what << " lacks a field of the interface";
}

TEST(Interface, Parses) {
  EXPECT_EQ(gpuctl_interface().name, kInterface);
  const Parsed service = Parser(service_interface_text()).parse();
  EXPECT_EQ(service.name, kServiceInterface);
  EXPECT_TRUE(service.methods.contains("GetInfo"));
  for (const std::string_view error : {kInterfaceNotFound, kMethodNotFound, kMethodNotImplemented, kInvalidParameter,
                                       kServicePermissionDenied, kExpectedMore})
    EXPECT_TRUE(service.errors.contains(std::string(error.substr(error.rfind('.') + 1)))) << error;
}

TEST(Interface, TheCheckerRefusesBrokenFiles) {
  for (const char* text :
       {"", "interface", "interface a.b type", "interface a.b type X (a int)", "interface a.b method X() ->",
        "interface a.b type X (a: int,)", "interface a.b type X (a: int, a: int)", "interface a.b type x ()",
        "interface a.b error X () error X ()", "interface a.b thing X ()"})
    EXPECT_THROW(Parser(text).parse(), std::runtime_error) << text;
}

TEST(Interface, EveryNamedTypeExists) {
  const std::set<std::string> builtin{"int", "float", "string", "bool", "object"};
  const auto check = [&](const FieldTypes& fields) {
    for (const auto& [name, type] : fields) {
      const std::string base = type.substr(type.find_first_not_of("?[]"));
      EXPECT_TRUE(builtin.contains(base) || gpuctl_interface().types.contains(base)) << name << ": " << type;
    }
  };
  for (const auto& [name, fields] : gpuctl_interface().types) check(fields);
  for (const auto& [name, fields] : gpuctl_interface().errors) check(fields);
  for (const auto& [name, method] : gpuctl_interface().methods) {
    check(method.first);
    check(method.second);
  }
}

TEST(Interface, StructsHaveExactlyItsFields) {
  const Parsed& i = gpuctl_interface();
  Slice slice;
  slice.max = slice.memory_max = slice.effective_reserve = slice.effective_max = slice.effective_priority =
      slice.effective_memory_max = slice.effective_memory_high = slice.memory_high = 1;
  slice.energy_joules = 1;
  slice.totals.emplace();
  slice.effective_reserve_mode = "active";
  slice.effective_isolation = "isolated";
  slice.effective_frozen = "yes";
  slice.quota_now = slice.latency_now = slice.isolation_now = "-";
  expect_same_fields(to_json(slice), i.types.at("Slice"), "Slice");
  expect_same_fields(
      to_json(SliceSettings{1,    "1:4",  "strict",   100,     1,      true, "25%", "40ms/100ms", "20ms",
                            1,    1,      "isolated", 0,       "none", 1,    true,  "0:1G",       1,
                            true, "0:1G", "2x",       "share", "yes",  1,    1,     "user:1",     "all"}),
      i.types.at("SliceSettings"), "SliceSettings");
  expect_same_fields(to_json(SliceOnGpu{.max = 1,
                                        .memory_max = 1,
                                        .seen = true,
                                        .memory_high = 1,
                                        .memory_min = 1,
                                        .same = true,
                                        .granted = 1,
                                        .memory = 1,
                                        .memory_peak = 1,
                                        .max_refusals = 1,
                                        .driver_max = 1,
                                        .quota = "1ms/10ms",
                                        .burst = "1ms"}),
                     i.types.at("SliceOnGpu"), "SliceOnGpu");
  expect_same_fields(to_json(Device{}), i.types.at("Device"), "Device");
  ClientUsage usage;
  usage.latency_us_log2 = usage.evict_us_log2 = {1};
  usage.swapped = usage.launches_before = usage.evictions_before = 1;
  expect_same_fields(to_json(usage), i.types.at("ClientUsage"), "ClientUsage");
  expect_same_fields(to_json(Latency{}), i.types.at("Latency"), "Latency");
  expect_same_fields(to_json(LatencyBucket{}), i.types.at("LatencyBucket"), "LatencyBucket");
  expect_same_fields(to_json(SliceTotals{}), i.types.at("SliceTotals"), "SliceTotals");
  expect_same_fields(to_json(Mps{.slice = "-"}), i.types.at("Mps"), "Mps");
  expect_same_fields(to_json(Pressure{}), i.types.at("Pressure"), "Pressure");
  expect_same_fields(to_json(Client{.isolated = true, .swap_now = "-"}), i.types.at("Client"), "Client");
  expect_same_fields(to_json(Kernel{}), i.types.at("Kernel"), "Kernel");
  expect_same_fields(to_json(KernelPoint{}), i.types.at("KernelPoint"), "KernelPoint");
  expect_same_fields(to_json(KernelDurations{.uid = 0}), i.types.at("KernelDurations"), "KernelDurations");
  expect_same_fields(to_json(Event{.uid = 0, .pid = 1}), i.types.at("Event"), "Event");
  expect_same_fields(to_json(UsageEntry{.device = 0}), i.types.at("UsageEntry"), "UsageEntry");
  expect_same_fields(to_json(MeasuredIsolation{}), i.types.at("MeasuredIsolation"), "MeasuredIsolation");
  expect_same_fields(to_json(Room{.isolated_part = 1}), i.types.at("Room"), "Room");
  expect_same_fields(to_json(Advice{.admitted = true, .reason = "x"}), i.methods.at("Advise").second, "Advise");
  expect_same_fields(to_json(Fairness{}), i.types.at("Fairness"), "Fairness");
  expect_same_fields(to_json(Launch{}), i.types.at("Launch"), "Launch");
  Status status;
  status.notes = {"x"};
  status.config = "x";
  status.mps_directory = status.mandatory = "x";
  status.mps.emplace();
  expect_same_fields(to_json(status), i.methods.at("GetStatus").second, "GetStatus");
  expect_same_fields(to_json(Snapshot{}), i.methods.at("Monitor").second, "Monitor");
}

TEST(Interface, DescriptionsByName) {
  EXPECT_EQ(interface_description("io.gpuctl"), interface_text());
  EXPECT_EQ(interface_description("org.varlink.service"), service_interface_text());
  EXPECT_TRUE(interface_description("io.gpuctl.CreateSlice").empty());
}

}  // namespace
}  // namespace gpuctl::ipc
