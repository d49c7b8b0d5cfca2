// Containers in classes, copies of them, loops over their elements, the algorithms of the standard library.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

__global__ void take(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = i;
}

struct Graph {
  std::vector<int> offsets, edges;
  int nodes = 0;
  explicit Graph(int n) : offsets(n + 1), nodes(n) {
    for (int i = 0; i < n; ++i) {
      offsets[i] = static_cast<int>(edges.size());
      for (int j = 0; j < i % 3; ++j) edges.push_back(i);
    }
    offsets[n] = static_cast<int>(edges.size());
  }
};

class Matrix {
 public:
  Matrix(int rows, int columns, int value = 7) : columns_(columns), data_(rows * columns, value) {}
  int size() const { return static_cast<int>(data_.size()); }
  const int* data() const { return data_.data(); }
  int& operator()(int i, int j) { return data_[i * columns_ + j]; }

 private:
  int columns_;
  std::vector<int> data_;
};

int main() {
  int* d;
  cudaMalloc(&d, 2400);
  const auto send = [&](const int* from, size_t count, int block) {
    int* fresh;
    cudaMalloc(&fresh, count * sizeof(int));
    cudaMemcpy(fresh, from, count * sizeof(int), cudaMemcpyHostToDevice);
    take<<<1, block>>>(fresh, 1);
    cudaFree(fresh);
  };

  std::vector<int> few(10), many(100), twos(20, 2);
  for (auto& x : few) x = 3;
  int at = 0;
  for (int& x : many) x = at++ % 5;
  int sum = 0;
  for (const int x : twos) sum += x;
  send(few.data(), few.size(), 32);
  send(many.data(), many.size(), 64);
  take<<<2, 32>>>(d, sum);
  int list[3] = {1, 2, 3};
  for (int& x : list) x *= 2;
  take<<<3, 32>>>(d, list[1]);
  std::vector<float> times(150);
  for (float& milliseconds : times) {
    take<<<4, 32>>>(d, 5);
    milliseconds = 1.0f;
  }

  Graph graph(100);
  send(graph.offsets.data(), graph.offsets.size(), 96);
  send(graph.edges.data(), graph.edges.size(), 128);
  Graph other = graph;
  other.edges.clear();
  auto& offsets = other.offsets;
  offsets.push_back(4);
  int& nodes = other.nodes;
  nodes = 50;
  take<<<5, 32>>>(d, graph.offsets.size() + other.offsets.size() + other.edges.size() + other.nodes);

  Matrix matrix(20, 30);
  Matrix changed = matrix;
  changed(1, 2) = 9;
  send(matrix.data(), matrix.size(), 160);
  send(changed.data(), changed.size(), 192);

  std::vector<int> ordered(200);
  std::iota(ordered.begin(), ordered.end(), 3);
  send(ordered.data(), ordered.size(), 224);
  std::reverse(ordered.begin(), ordered.end());
  std::sort(ordered.begin() + 100, ordered.end());
  send(ordered.data(), ordered.size(), 256);
  take<<<6, 32>>>(d, std::accumulate(ordered.begin(), ordered.begin() + 10, 0) % 100);
  std::fill(ordered.begin(), ordered.end(), 4);
  send(ordered.data(), ordered.size(), 288);
  std::partial_sum(ordered.begin(), ordered.end(), ordered.begin());
  send(ordered.data(), ordered.size(), 320);

  std::unique_ptr<int[]> owned(new int[50]);
  for (int i = 0; i < 50; ++i) owned[i] = i * 2;
  send(owned.get(), 50, 352);
  return 0;
}
