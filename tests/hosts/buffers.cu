// Device memory in class templates: what their constructors allocate and upload is what the kernels get.
#include <cuda_runtime.h>

#include <cstddef>
#include <thread>
#include <vector>

__global__ void scale(int* data, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= by;
}

std::vector<int> ramp(size_t count, int period = 7) {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i % period);
  return values;
}

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) { cudaMalloc(&data_, count * sizeof(T)); }
  explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) { upload(host); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  void upload(const std::vector<T>& host) {
    cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
  }
  T* get() const { return data_; }
  int size() const { return static_cast<int>(count_); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

template <typename T, int SIDE>
struct Tile : Buffer<T> {
  Tile() : Buffer<T>(SIDE * SIDE) {}
};

template <typename T>
void launch(const Buffer<T>& buffer, int block, int by) {
  scale<<<(buffer.size() + block - 1) / block, block>>>(buffer.get(), buffer.size(), by);
}

void count_up(int* values, int n) {
  for (int i = 0; i < n; ++i) values[i] = i;
}

int main() {
  const std::vector<int> host = ramp(1000);
  Buffer<int> a(host), b(host.size() / 2), c(ramp(300, 5));
  b.upload(ramp(500, 3));
  launch(a, 128, 2);
  launch(b, 64, 3);
  launch(c, 32, 4);
  Tile<int, 16> tile;
  cudaMemset(tile.get(), 0, 4 * tile.size());
  launch(tile, 256, 5);
  // Into the middle of an array.
  scale<<<4, 32>>>(a.get() + 200, 100, 6);
  const std::vector<int> back = b.download();
  // What another thread writes is not known.
  std::vector<int> counted(200);
  std::thread worker(count_up, counted.data(), 200);
  worker.join();
  Buffer<int> d(counted);
  launch(d, 96, 7);
  return back[4] == 3 * (4 % 3) ? 0 : 1;
}
