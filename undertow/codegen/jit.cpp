// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/jit.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

#include "undertow/base/check.h"
#include "undertow/codegen/emit.h"
#include "undertow/codegen/runtime.h"

namespace undertow::codegen {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

void initialise_llvm() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Splitting live ranges around whole regions, the register allocator passes hoisted constants from register to
    // register on every iteration: 20 moves in a loop of 26 instructions for exp. Without, it reloads two of them.
    auto& options = llvm::cl::getRegisteredOptions();
    if (const auto it = options.find("grow-region-complexity-budget"); it != options.end())
      it->second->addOccurrence(0, it->first(), "0");
    return true;
  }();
  (void)done;
}

llvm::TargetMachine& target_machine(const Isa& isa) {
  static std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto& machine = machines[isa.cpu];
  if (!machine) {
    std::string error;
    const auto* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
    UNDERTOW_CHECK(target, Error, "LLVM has no x86-64 target: {}", error);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    machine.reset(target->createTargetMachine(kTriple, isa.cpu, "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                              llvm::CodeGenOptLevel::Default, true));
  }
  return *machine;
}

/// Stack slots to registers, equal address computations merged. The emitter has done what else is to be done, and
/// instcombine would undo the forms it chose for min and max.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass());
  for (auto& fn : module)
    if (!fn.isDeclaration()) passes.run(fn, fam);
}

std::string generate(std::span<const NestFunction> functions, const Isa& isa, llvm::CodeGenFileType type) {
  initialise_llvm();
  auto& machine = target_machine(isa);
  llvm::LLVMContext context;
  llvm::Module module("undertow", context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine.createDataLayout());
  for (const auto& f : functions) emit_nest(module, *f.nest, *f.schedule, isa, f.name);

  std::string error;
  llvm::raw_string_ostream error_stream(error);
  if (llvm::verifyModule(module, &error_stream)) {
    std::string text;
    llvm::raw_string_ostream text_stream(text);
    module.print(text_stream, nullptr);
    throw Error("generated code is not valid: " + error_stream.str() + "\n" + text_stream.str());
  }
  optimise(module, machine);
  static const char* dump = std::getenv("UNDERTOW_DUMP_LLVM");
  if (dump && *dump && std::string_view(dump) != "0") {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    std::cerr << stream.str();
  }
  llvm::SmallVector<char, 0> out;
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager codegen;
  UNDERTOW_CHECK(!machine.addPassesToEmitFile(codegen, stream, nullptr, type, true), Error,
                 "LLVM cannot write this kind of file");
  codegen.run(module);
  return {out.begin(), out.end()};
}

/// One JIT for the process, never destroyed: threads may still run its code at exit.
llvm::orc::LLJIT& jit() {
  static llvm::orc::LLJIT* const instance = [] {
    initialise_llvm();
    llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(kTriple)};
    auto made = llvm::orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(std::move(machine))
                    .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                    .setLinkProcessSymbolsByDefault(false)
                    .create();
    UNDERTOW_CHECK(static_cast<bool>(made), Error, "LLVM's JIT does not start: {}", llvm::toString(made.takeError()));
    auto* j = made->release();
    llvm::orc::SymbolMap symbols;
    const auto add = [&](const char* name, void* p) {
      symbols[j->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(p), llvm::JITSymbolFlags::Exported};
    };
    for (const auto& [name, p] : runtime_symbols()) add(name, p);
    // What LLVM itself may call.
    add("memset", reinterpret_cast<void*>(&std::memset));
    add("memcpy", reinterpret_cast<void*>(&std::memcpy));
    llvm::cantFail(j->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
    return j;
  }();
  return *instance;
}

class Loaded : public LoadedObject {
 public:
  explicit Loaded(const std::string& object) {
    static int count = 0;
    auto& j = jit();
    auto lib = j.createJITDylib("undertow." + std::to_string(count++));
    UNDERTOW_CHECK(static_cast<bool>(lib), Error, "LLVM's JIT: {}", llvm::toString(lib.takeError()));
    lib_ = &*lib;
    lib_->addToLinkOrder(j.getMainJITDylib());
    if (auto error = j.addObjectFile(*lib_, llvm::MemoryBuffer::getMemBufferCopy(object, "undertow"))) {
      const std::string text = llvm::toString(std::move(error));
      llvm::cantFail(j.getExecutionSession().removeJITDylib(*lib_));
      throw Error("LLVM's JIT does not take this object: " + text);
    }
  }
  ~Loaded() override { llvm::consumeError(jit().getExecutionSession().removeJITDylib(*lib_)); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  void* address(const std::string& name) override {
    auto symbol = jit().lookup(*lib_, name);
    UNDERTOW_CHECK(static_cast<bool>(symbol), Error, "LLVM's JIT: {}", llvm::toString(symbol.takeError()));
    return symbol->toPtr<void*>();
  }

 private:
  llvm::orc::JITDylib* lib_ = nullptr;
};

}  // namespace

std::string compile_object(std::span<const NestFunction> functions, const Isa& isa) {
  static const char* dump = std::getenv("UNDERTOW_DUMP_LLVM");
  if (dump && std::string_view(dump) == "asm") std::cerr << compile_assembly(functions, isa);
  return generate(functions, isa, llvm::CodeGenFileType::ObjectFile);
}

std::string compile_assembly(std::span<const NestFunction> functions, const Isa& isa) {
  return generate(functions, isa, llvm::CodeGenFileType::AssemblyFile);
}

std::shared_ptr<LoadedObject> load_object(const std::string& object) { return std::make_shared<Loaded>(object); }

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace undertow::codegen
