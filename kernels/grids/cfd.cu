// One time step of the Euler equations of a gas on an unstructured mesh of cells with four faces each, by finite
// volumes: how far each cell may go in time, then three times (a Runge-Kutta scheme) what passes the faces and where
// that leads.
#include "kernels/grids/cfd_flow.h"

using namespace gpuctl::bench;

extern "C" __global__ void cfdStepFactor(const float* flows, const float* sizes, float* factors, unsigned cells) {
  const unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  factors[cell] = step_factor(load_flow(flows, cells, cell), sizes[cell]);
}

extern "C" __global__ void cfdFlux(const int* neighbors, const float* normals, const float* flows, float* gains,
                                   unsigned cells) {
  const unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  store_flow(gains, cells, cell, gain_of(neighbors, normals, flows, cells, cell));
}

extern "C" __global__ void cfdAdvance(const float* before, const float* gains, const float* factors, float* after,
                                      unsigned cells, float part) {
  const unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  store_flow(after, cells, cell,
             advanced(load_flow(before, cells, cell), load_flow(gains, cells, cell), multiply(factors[cell], part)));
}
