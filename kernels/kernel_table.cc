#include "kernel_table.h"

#include "binomial_options.h"
#include "black_scholes.h"
#include "histogram.h"
#include "lava_md.h"
#include "matrix_mul.h"
#include "md.h"
#include "md5_hash.h"
#include "nearest_neighbor.h"
#include "ptx_images.h"
#include "reduction.h"
#include "spmv.h"
#include "tpacf.h"
#include "triad.h"
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
    {"triad",
     "EffiSha",
     "float* a, float* b, float* out, float scale, u32 count",
     "elements",
     kTriadPtx,
     {{{30'021}, {4'000'021}, {64'000'021}}},
     false,
     generate_triad,
     reference_triad},
    {"nearestNeighbor",
     "FLEP, SMGuard",
     "float2* places, float* out, float latitude, float longitude, u32 count",
     "places",
     kNearestNeighborPtx,
     {{{30'031}, {2'000'031}, {48'000'031}}},
     false,
     generate_nearest_neighbor,
     reference_nearest_neighbor},
    {"spmv",
     "FLEP, FRS, EffiSha",
     "float* values, u32* columns, u32* starts, float* x, float* out, u32 rows",
     "rows, mean entries of a row",
     kSpmvPtx,
     {{{601, 40}, {20'001, 60}, {300'001, 100}}},
     false,
     generate_spmv,
     reference_spmv},
    {"md",
     "FLEP, EffiSha",
     "float4* positions, u32* neighbors, u32* list, float4* forces, u32 count",
     "atoms",
     kMdPtx,
     {{{2'003}, {12'289}, {1'000'003}}},
     false,
     generate_md,
     reference_md},
    {"blackScholes",
     "FRS, SMGuard",
     "float* prices, float* strikes, float* years, float* out, float rate, float volatility, u32 count",
     "options",
     kBlackScholesPtx,
     {{{10'007}, {500'007}, {20'000'007}}},
     false,
     generate_black_scholes,
     reference_black_scholes},
    {"md5Hash",
     "SiM, SMGuard, EffiSha",
     "uint4* sought_digest, u32* out, u32 keys",
     "keys",
     kMd5HashPtx,
     {{{24'011}, {300'011}, {8'000'011}}},
     false,
     generate_md5_hash,
     reference_md5_hash},
    {"binomialOptions",
     "SiM",
     "BinomialOption* options, float* out, u32 steps",
     "options, time steps",
     kBinomialOptionsPtx,
     {{{48, 200}, {264, 300}, {1024, 2047}}},
     false,
     generate_binomial_options,
     reference_binomial_options},
    {"lavaMD",
     "SiM, SMGuard",
     "float4* particles, u32* starts, u32* around, float4* effects, u32 per_box",
     "boxes along a side, particles of a box",
     kLavaMdPtx,
     {{{3, 24}, {5, 40}, {8, 100}}},
     false,
     generate_lava_md,
     reference_lava_md},
    {"tpacf",
     "SiM",
     "float* x, float* y, float* z, u32* out, u32 points, u32 random_catalogues",
     "points, random catalogues",
     kTpacfPtx,
     {{{257, 3}, {300, 65}, {1000, 100}}},
     false,
     generate_tpacf,
     reference_tpacf},
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
