#include "ptx/syntax/printer.h"

#include "ptx/lexical/lexer.h"

namespace gpuctl::ptx {
namespace {

class Printer {
 public:
  std::string text;

  void module(const Module& module) {
    text += ".version " + module.version + "\n.target ";
    separated(module.targets, [this](const std::string& target) { text += target; });
    text += '\n';
    if (!module.address_size.empty()) text += ".address_size " + module.address_size + "\n";
    text += '\n';
    for (const Item& item : module.items) {
      if (const auto* variable = std::get_if<Variable>(&item)) {
        this->variable(*variable);
        text += ";\n";
      } else if (const auto* function = std::get_if<Function>(&item)) {
        this->function(*function);
      } else {
        directive(std::get<Directive>(item));
        text += '\n';
      }
    }
  }

  void statement(const Statement& statement) {
    if (const auto* label = std::get_if<Label>(&statement)) {
      text += label->name;
      text += ":\n";
      return;
    }
    if (const auto* scope = std::get_if<Scope>(&statement)) {
      indent();
      text += "{\n";
      ++depth_;
      for (const Statement& inner : scope->body) this->statement(inner);
      --depth_;
      indent();
      text += "}\n";
      return;
    }
    indent();
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      this->instruction(*instruction);
      text += ";\n";
    } else if (const auto* variable = std::get_if<Variable>(&statement)) {
      this->variable(*variable);
      text += ";\n";
    } else {
      directive(std::get<Directive>(statement));
      text += '\n';
    }
  }

  void operand(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kSink:
        text += '_';
        break;
      case Operand::Kind::kAddress:
        text += '[';
        this->operand(operand.items[0]);
        text += operand.offset_text;
        for (std::size_t i = 1; i < operand.items.size(); ++i) {
          text += ", ";
          this->operand(operand.items[i]);
        }
        text += ']';
        break;
      case Operand::Kind::kVector:
        text += '{';
        operands(operand.items);
        text += '}';
        break;
      case Operand::Kind::kList:
        text += '(';
        operands(operand.items);
        text += ')';
        break;
      case Operand::Kind::kPredicatePair:
        this->operand(operand.items[0]);
        text += '|';
        this->operand(operand.items[1]);
        break;
      case Operand::Kind::kNegated:
        text += operand.text;
        this->operand(operand.items[0]);
        break;
      default:
        text += operand.text;
        text += operand.offset_text;
        if (!operand.component.empty()) {
          text += '.';
          text += operand.component;
        }
    }
  }

 private:
  template <class List, class Print>
  void separated(const List& list, Print print) {
    bool first = true;
    for (const auto& element : list) {
      if (!first) text += ", ";
      first = false;
      print(element);
    }
  }

  void operands(const std::vector<Operand>& list) {
    separated(list, [this](const Operand& operand) { this->operand(operand); });
  }

  void indent() { text.append(depth_, '\t'); }

  void function(const Function& function) {
    text += '\n';
    for (const std::string& word : function.linkage) text += word + " ";
    text += function.is_entry ? ".entry " : ".func ";
    for (const std::string& word : function.attributes) text += word + " ";
    if (function.has_returns) {
      text += '(';
      separated(function.returns, [this](const Variable& parameter) { variable(parameter); });
      text += ") ";
    }
    text += function.name;
    if (function.has_params) {
      text += '(';
      bool first = true;
      for (const Variable& parameter : function.params) {
        text += first ? "\n\t" : ",\n\t";
        first = false;
        variable(parameter);
      }
      text += first ? ")" : "\n)";
    }
    for (const Directive& line : function.directives) {
      text += '\n';
      directive(line);
    }
    if (!function.body) {
      text += ";\n";
      return;
    }
    text += "\n{\n";
    depth_ = 1;
    for (const Statement& inner : *function.body) statement(inner);
    depth_ = 0;
    text += "}\n";
  }

  void instruction(const Instruction& instruction) {
    if (instruction.guard) {
      text += instruction.guard->negated ? "@!" : "@";
      text += instruction.guard->reg;
      text += ' ';
    }
    text += instruction.opcode;
    for (const std::string& modifier : instruction.modifiers) {
      text += '.';
      text += modifier;
    }
    if (instruction.operands.empty()) return;
    text += instruction.modifiers.empty() ? " " : " \t";
    operands(instruction.operands);
  }

  void variable(const Variable& variable) {
    for (const std::string& word : variable.specifiers) {
      text += word;
      text += ' ';
    }
    separated(variable.names, [this](const Declarator& name) { declarator(name); });
  }

  void declarator(const Declarator& name) {
    text += name.name;
    if (!name.shape_text.empty()) {
      text += name.shape_text;
    } else {
      if (name.range) text += '<' + std::to_string(*name.range) + '>';
      for (const auto& dim : name.dims) text += '[' + (dim ? std::to_string(*dim) : "") + ']';
    }
    if (name.init) {
      text += " = ";
      initializer(*name.init);
    }
  }

  void initializer(const Initializer& value) {
    if (value.kind != Initializer::Kind::kList) {
      for (std::size_t i = 0; i < value.tokens.size(); ++i) {
        if (i > 0 && must_stand_apart(value.tokens[i - 1], value.tokens[i])) text += ' ';
        text += value.tokens[i];
      }
      return;
    }
    text += '{';
    separated(value.items, [this](const Initializer& item) { initializer(item); });
    text += '}';
  }

  /// Prints debug data in a section one datum a line, as compilers write it.
  void directive(const Directive& directive) {
    const bool section = directive.name() == ".section";
    bool space = false;
    for (std::size_t i = 0; i < directive.tokens.size(); ++i) {
      const std::string& token = directive.tokens[i];
      const char c = token[0];
      const bool joined = token.size() == 1 && (c == ';' || c == ',' || c == ':' || c == ')');
      const bool line = section && i > 1 && ((c == '.' && token.size() > 1) || c == '}' || label_starts(directive, i));
      if (line) {
        text += '\n';
      } else if (space && !joined) {
        text += ' ';
      }
      text += token;
      space = !(token.size() == 1 && (c == '(' || c == '+' || c == '-'));
    }
  }

  static bool label_starts(const Directive& directive, std::size_t i) {
    return i + 1 < directive.tokens.size() && directive.tokens[i + 1] == ":";
  }

  std::size_t depth_ = 0;
};

}  // namespace

std::string print(const Module& module) {
  Printer printer;
  printer.module(module);
  return std::move(printer.text);
}

std::string print(const Operand& operand) {
  Printer printer;
  printer.operand(operand);
  return std::move(printer.text);
}

}  // namespace gpuctl::ptx
