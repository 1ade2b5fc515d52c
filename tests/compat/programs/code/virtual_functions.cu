// compat: virtual functions of objects that a kernel constructs and another one uses
// soft: yes
#include <new>

#include "work.h"

struct Shape {
  __device__ explicit Shape(int side) : side(side) {}
  __device__ virtual ~Shape() {}
  __device__ virtual std::uint32_t area(int steps) const = 0;
  int side;
};
struct Square : Shape {
  using Shape::Shape;
  __device__ std::uint32_t area(int steps) const override { return mix(side * side, steps); }
};
struct Stripe : Shape {
  __device__ Stripe(int side, int width) : Shape(side), width(width) {}
  __device__ std::uint32_t area(int steps) const override { return mix(side * width, steps / 2) + 1; }
  int width;
};

constexpr int kRoom = (sizeof(Stripe) + 15) / 16 * 16;

__global__ void construct(unsigned char* room, Shape** shapes, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  void* at = room + static_cast<std::size_t>(i) * kRoom;
  if (i % 3)
    shapes[i] = new (at) Square(i);
  else
    shapes[i] = new (at) Stripe(i, i % 7);
}

__global__ void use(Shape** shapes, std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  values[i] += shapes[(i * 7 + values[i] % 5) % count]->area(steps);
}

int main() {
  const int count = work_threads() / 4, grid = (count + 127) / 128;
  unsigned char* room = zeros<unsigned char>(static_cast<std::size_t>(count) * kRoom);
  Shape** shapes = zeros<Shape*>(count);
  std::uint32_t* values = zeros<std::uint32_t>(count);
  construct<<<grid, 128>>>(room, shapes, count);
  for (int round = 0; round < work_rounds(); ++round) use<<<grid, 128>>>(shapes, values, count, work_steps());
  CHECK(cudaGetLastError());
  print_device_hash("virtual", values, count);
}
