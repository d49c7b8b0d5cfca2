// Element-local differentiation of a discontinuous Galerkin method: three small matrices, one for
// each axis, times the 64 nodal values of every element. What is staged in shared memory makes the
// variants: nothing, the field, or the field and the matrices.
#include "harness.cuh"

constexpr int NODES = 64;  // of an element: polynomials of degree 3 on a cube
constexpr int AXES = 3;
constexpr int LANES = 16;     // nodes a block computes at a time, threadIdx.x
constexpr int ELEMENTS = 16;  // elements of a block, threadIdx.y

// The matrices lie by columns, (axis, column, row): neighbouring rows are read side by side. A block
// computes a quarter of the rows of its elements.
// warplens: grid=(4,512) block=(16,16) elements=8192
__global__ void dg_diff(const float* __restrict__ matrices, const float* __restrict__ field,
                        float* __restrict__ derivatives, int elements) {
  const int row = blockIdx.x * LANES + threadIdx.x;
  const int element = blockIdx.y * ELEMENTS + threadIdx.y;
  float sum[AXES] = {};
#pragma unroll 4
  for (int k = 0; k < NODES; ++k) {
    const float value = field[element * NODES + k];
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      sum[axis] += matrices[(axis * NODES + k) * NODES + row] * value;
    }
  }
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {
    derivatives[(axis * elements + element) * NODES + row] = sum[axis];
  }
}

// The field of the block's elements is fetched once, in rows.
// warplens: grid=(4,512) block=(16,16) elements=8192
__global__ void dg_diff_field(const float* __restrict__ matrices, const float* __restrict__ field,
                              float* __restrict__ derivatives, int elements) {
  __shared__ float values[ELEMENTS][NODES];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.x * LANES + tx;
  const int element = blockIdx.y * ELEMENTS + ty;
#pragma unroll
  for (int k = 0; k < NODES; k += LANES) values[ty][k + tx] = field[element * NODES + k + tx];
  __syncthreads();

  float sum[AXES] = {};
#pragma unroll 4
  for (int k = 0; k < NODES; ++k) {
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      sum[axis] += matrices[(axis * NODES + k) * NODES + row] * values[ty][k];
    }
  }
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {
    derivatives[(axis * elements + element) * NODES + row] = sum[axis];
  }
}

// And the matrices in tiles of 16 x 16.
// warplens: grid=(4,512) block=(16,16) elements=8192
__global__ void dg_diff_both(const float* __restrict__ matrices, const float* __restrict__ field,
                             float* __restrict__ derivatives, int elements) {
  __shared__ float values[ELEMENTS][NODES];
  __shared__ float tile[AXES][ELEMENTS][LANES];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.x * LANES + tx;
  const int element = blockIdx.y * ELEMENTS + ty;
#pragma unroll
  for (int k = 0; k < NODES; k += LANES) values[ty][k + tx] = field[element * NODES + k + tx];

  float sum[AXES] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < NODES; k0 += ELEMENTS) {
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      tile[axis][ty][tx] = matrices[(axis * NODES + k0 + ty) * NODES + row];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ELEMENTS; ++k) {
#pragma unroll
      for (int axis = 0; axis < AXES; ++axis) sum[axis] += tile[axis][k][tx] * values[ty][k0 + k];
    }
    __syncthreads();
  }
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {
    derivatives[(axis * elements + element) * NODES + row] = sum[axis];
  }
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 8192, LANES * ELEMENTS, /*fixed_block=*/true);
  const int n = program.n;
  if (n % ELEMENTS != 0 || n > (1 << 20)) {
    std::fprintf(stderr, "--n counts elements: a multiple of %d, at most 2^20\n", ELEMENTS);
    return 2;
  }
  const std::vector<float> host_matrices = harness::ramp(AXES * NODES * NODES);
  const std::vector<float> host_field = harness::ramp(static_cast<size_t>(n) * NODES, 997);
  std::vector<float> want(AXES * host_field.size());
  for (int axis = 0; axis < AXES; ++axis) {
    for (int element = 0; element < n; ++element) {
      for (int row = 0; row < NODES; ++row) {
        double sum = 0.0;
        for (int k = 0; k < NODES; ++k) {
          sum += static_cast<double>(host_matrices[(axis * NODES + k) * NODES + row]) *
                 host_field[static_cast<size_t>(element) * NODES + k];
        }
        want[(static_cast<size_t>(axis) * n + element) * NODES + row] = static_cast<float>(sum);
      }
    }
  }
  harness::DeviceBuffer<float> matrices(host_matrices), field(host_field), out(want.size());
  const struct {
    const char* name;
    void (*kernel)(const float*, const float*, float*, int);
  } kernels[] = {
      {"dg_diff", dg_diff}, {"dg_diff_field", dg_diff_field}, {"dg_diff_both", dg_diff_both}};
  const dim3 block(LANES, ELEMENTS);
  const dim3 grid(NODES / LANES, n / ELEMENTS);
  for (const auto& each : kernels) {
    program.run(
        each.name, {grid, block, 0, {{"elements", n}}}, [&] { out.clear(); },
        [&] { each.kernel<<<grid, block>>>(matrices.get(), field.get(), out.get(), n); },
        [&] { return harness::max_error(out.download(), want); }, 1e-4);
  }
  return program.exit_status();
}
