// Kernels in tables, structures in functions, structured bindings, managed memory, options and repeated launches.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

__global__ void set(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = 1;
}

__global__ void add(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

struct Size {
  int rows, columns;
};

struct Options {
  int n = 100;
  int repeat = 3;
  bool in_place = false;
  static Options of(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--n") == 0 && i + 1 < argc) {
        options.n = std::atoi(argv[++i]);
      } else if (std::strncmp(argv[i], "--repeat=", 9) == 0) {
        options.repeat = std::atoi(argv[i] + 9);
      } else if (std::string(argv[i]) == "--in-place") {
        options.in_place = true;
      }
    }
    return options;
  }
};

int main(int argc, char** argv) {
  const Options options = Options::of(argc, argv);
  int* d;
  cudaMalloc(&d, 1000 * sizeof(int));

  const struct {
    const char* name;
    void (*kernel)(int*, int);
    int n;
  } all[] = {{"set", set, 10}, {"add", add, 20}};
  for (const auto& each : all) each.kernel<<<1, 32>>>(d, each.n);
  for (int i = 0; i < 2; ++i) all[i].kernel<<<2, 32>>>(d, all[i].n);

  struct Config {
    int block;
    Size size;
  };
  const Config configs[] = {{64, {2, 3}}, {128, {4, 5}}};
  for (const Config& config : configs) set<<<3, config.block>>>(d, config.size.rows * config.size.columns);
  const std::vector<Config> more = {{96, {2, 3}}, {160, {4, 5}}};
  for (const auto& config : more) {
    for (const bool first : {false, true}) (first ? set : add)<<<4, config.block>>>(d, 7);
  }
  std::vector<Size> sizes;
  sizes.push_back({7, 8});
  sizes.emplace_back(Size{9, 10});
  for (const auto& [rows, columns] : sizes) set<<<5, 32>>>(d, rows * columns);
  const std::map<std::string, int> named = {{"a", 3}, {"b", 4}};
  for (const auto& [name, n] : named) set<<<6, 32>>>(d, n);

  int* shared;
  cudaMallocManaged(&shared, options.n * sizeof(int));
  for (int i = 0; i < options.n; ++i) shared[i] = 2 * i;
  for (int i = 0; i < options.repeat; ++i) add<<<(options.n + 63) / 64, 64>>>(shared, options.n);
  cudaDeviceSynchronize();
  int* result = options.in_place ? shared : d;
  add<<<7, 32>>>(result, options.in_place ? 11 : 12);
  cudaDeviceSynchronize();
  return shared[5] == 10 + options.repeat + (options.in_place ? 1 : 0) ? 0 : 1;
}
