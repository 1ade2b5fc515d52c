#include "kernel_table.h"

#include "histogram.h"
#include "matrix_mul.h"
#include "ptx_images.h"
#include "reduction.h"
#include "vector_add.h"
#include "work.h"

namespace gpuctl::bench {
namespace {

// Sizes end in odd numbers where the kernel allows it, so that the last block has idle threads.
constexpr KernelSpec kTable[] = {
    {"vectorAdd",
     "FLEP, FRS, SMGuard",
     "float* a, float* b, float* out, u32 count",
     "elements",
     kVectorAddPtx,
     {{{30'011}, {4'000'011}, {64'000'011}}},
     false,
     generate_vector_add,
     reference_vector_add},
    {"matrixMul",
     "FLEP, FRS, SMGuard",
     "float* a, float* b, float* out, u32 rows, u32 columns, u32 inner",
     "rows, columns, inner",
     kMatrixMulPtx,
     {{{52, 70, 45}, {250, 509, 263}, {1024, 1100, 1000}}},
     false,
     generate_matrix_mul,
     reference_matrix_mul},
    {"reduction",
     "FRS, EffiSha",
     "u32* in, u32* partial, u32 count",
     "words",
     kReductionPtx,
     {{{60'101}, {4'000'101}, {128'000'101}}},
     false,
     generate_reduction,
     reference_reduction},
    {"histogram",
     "FRS",
     "u32* in, u32* bins, u32 count",
     "words",
     kHistogramPtx,
     {{{40'003}, {4'000'003}, {64'000'003}}},
     false,
     generate_histogram,
     reference_histogram},
    {"work",
     "",
     "float* table, u32* out, u32 iterations",
     "blocks, iterations",
     kWorkPtx,
     {{{32, 40}, {1056, 500}, {10'560, 5'000}}},
     true,
     generate_work,
     reference_work},
};

}  // namespace

std::span<const KernelSpec> kernel_table() {
  return kTable;
}

const KernelSpec* find_kernel(std::string_view name) {
  for (const KernelSpec& spec : kTable) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace gpuctl::bench
