// y = A x for a sparse matrix in compressed rows: row i holds value[k] in column[k] for k from
// row_start[i] to row_start[i + 1]. Addresses and trips come from the data; how threads are laid over
// rows decides what a warp makes of them.
#include "harness.cuh"

constexpr int BLOCK = 128;
constexpr int TEAM = 16;  // threads that share a row: half a warp

// A row per thread: lanes run as long as the longest of their rows, and each walks elsewhere.
// warplens: grid=512 block=128 rows=65536
__global__ void spmv_global(const int* __restrict__ row_start, const int* __restrict__ column,
                            const float* __restrict__ value, const float* __restrict__ x,
                            float* __restrict__ y, int rows) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= rows) return;
  const int end = row_start[row + 1];
  float sum = 0.0f;
  for (int k = row_start[row]; k < end; ++k) sum += value[k] * x[column[k]];
  y[row] = sum;
}

// Neighbours share the bounds of their rows: each is fetched once.
// warplens: grid=512 block=128 rows=65536
__global__ void spmv_shared(const int* __restrict__ row_start, const int* __restrict__ column,
                            const float* __restrict__ value, const float* __restrict__ x,
                            float* __restrict__ y, int rows) {
  __shared__ int start[BLOCK + 1];
  const int t = threadIdx.x;
  const int row = blockIdx.x * BLOCK + t;
  if (row <= rows) start[t] = row_start[row];
  if (t == 0 && row + BLOCK <= rows) start[BLOCK] = row_start[row + BLOCK];
  __syncthreads();

  if (row < rows) {
    const int end = start[t + 1];
    float sum = 0.0f;
    for (int k = start[t]; k < end; ++k) sum += value[k] * x[column[k]];
    y[row] = sum;
  }
}

// A row a half-warp: its threads take neighbouring elements, then add up what they have.
// warplens: grid=8192 block=128 rows=65536
__global__ void spmv_consecutive(const int* __restrict__ row_start,
                                 const int* __restrict__ column, const float* __restrict__ value,
                                 const float* __restrict__ x, float* __restrict__ y, int rows) {
  __shared__ float sums[BLOCK];
  const int t = threadIdx.x;
  const int member = t % TEAM;
  const int row = (blockIdx.x * BLOCK + t) / TEAM;

  float sum = 0.0f;
  if (row < rows) {
    const int end = row_start[row + 1];
    for (int k = row_start[row] + member; k < end; k += TEAM) sum += value[k] * x[column[k]];
  }
  sums[t] = sum;
  for (int step = TEAM / 2; step > 0; step /= 2) {
    __syncthreads();
    if (member < step) sums[t] += sums[t + step];
  }
  if (member == 0 && row < rows) y[row] = sums[t];
}

// The same, but the elements before the first multiple of the team's size are taken first: all the
// other requests begin on a boundary.
// warplens: grid=8192 block=128 rows=65536
__global__ void spmv_coalesced(const int* __restrict__ row_start, const int* __restrict__ column,
                               const float* __restrict__ value, const float* __restrict__ x,
                               float* __restrict__ y, int rows) {
  __shared__ float sums[BLOCK];
  const int t = threadIdx.x;
  const int member = t % TEAM;
  const int row = (blockIdx.x * BLOCK + t) / TEAM;

  float sum = 0.0f;
  if (row < rows) {
    const int begin = row_start[row];
    const int end = row_start[row + 1];
    const int aligned = (begin + TEAM - 1) / TEAM * TEAM;
    const int unaligned = begin + member;
    if (unaligned < aligned && unaligned < end) sum = value[unaligned] * x[column[unaligned]];
    for (int k = aligned + member; k < end; k += TEAM) sum += value[k] * x[column[k]];
  }
  sums[t] = sum;
  for (int step = TEAM / 2; step > 0; step /= 2) {
    __syncthreads();
    if (member < step) sums[t] += sums[t + step];
  }
  if (member == 0 && row < rows) y[row] = sums[t];
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 16, BLOCK, /*fixed_block=*/true);
  const int rows = program.n;
  if (rows > (1 << 24)) {
    std::fprintf(stderr, "--n is the number of rows, at most 2^24\n");
    return 2;
  }
  // Rows of 0 to 45 elements, 23 on average, in columns all over; small whole numbers, so that sums
  // are exact.
  std::vector<int> host_start(rows + 1, 0);
  for (int i = 0; i < rows; ++i) host_start[i + 1] = host_start[i] + (i % 1009) * 37 % 46;
  const size_t elements = host_start[rows];
  std::vector<int> host_column(elements);
  std::vector<float> host_value(elements), host_x(rows), want(rows);
  for (size_t k = 0; k < elements; ++k) {
    host_column[k] = static_cast<int>(k * 7919 % rows);
    host_value[k] = static_cast<float>(k % 11) - 5.0f;
  }
  for (int i = 0; i < rows; ++i) host_x[i] = static_cast<float>(i % 13) - 6.0f;
  for (int i = 0; i < rows; ++i) {
    float sum = 0.0f;
    for (int k = host_start[i]; k < host_start[i + 1]; ++k) sum += host_value[k] * host_x[host_column[k]];
    want[i] = sum;
  }

  harness::DeviceBuffer<int> row_start(host_start), column(host_column);
  harness::DeviceBuffer<float> value(host_value), x(host_x), y(rows);
  const struct {
    const char* name;
    void (*kernel)(const int*, const int*, const float*, const float*, float*, int);
    int threads_a_row;
  } kernels[] = {{"spmv_global", spmv_global, 1},
                 {"spmv_shared", spmv_shared, 1},
                 {"spmv_consecutive", spmv_consecutive, TEAM},
                 {"spmv_coalesced", spmv_coalesced, TEAM}};
  for (const auto& each : kernels) {
    const int grid = harness::ceil_div(rows, BLOCK / each.threads_a_row);
    program.run(
        each.name, {grid, BLOCK, 0, {{"rows", rows}}}, [&] { y.clear(); },
        [&] {
          each.kernel<<<grid, BLOCK>>>(row_start.get(), column.get(), value.get(), x.get(), y.get(),
                                       rows);
        },
        [&] { return harness::max_error(y.download(), want); }, 0.0);
  }
  return program.exit_status();
}
