// kernels: integrate transform_with read_view count_hits walk_list advance
// Structures of pointers, member functions, call operators, subscript operators, lambdas.
#include <cuda_runtime.h>

struct Bodies {
  float4* position;
  float4* velocity;
  int count;
};

__global__ void integrate(Bodies bodies, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= bodies.count) return;
  float4 p = bodies.position[i];
  const float4 v = bodies.velocity[i];
  p.x += v.x * dt;
  p.y += v.y * dt;
  p.z += v.z * dt;
  bodies.position[i] = p;
}

template <typename F>
__global__ void transform_with(float* data, int n, F f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = f(data[i]);
}

void scale_by(float* data, float factor, int n) {
  transform_with<<<(n + 255) / 256, 256>>>(data, n, [=] __device__(float x) { return x * factor; });
}

struct View {
  const float* data;
  int pitch;
  __device__ float operator()(int row, int column) const { return data[row * pitch + column]; }
  __device__ float at(int i) const { return data[i]; }
};

__global__ void read_view(View view, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y;
  out[y * view.pitch + x] = view(y, x) + view.at(x);
}

class Counter {
 public:
  __device__ explicit Counter(unsigned* cells) : cells_(cells) {}
  __device__ void hit(int i) { atomicAdd(&cells_[i], 1u); }
  __device__ unsigned& operator[](int i) { return cells_[i]; }

 private:
  unsigned* cells_;
};

__global__ void count_hits(const int* keys, unsigned* cells, int n) {
  Counter counter(cells);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counter.hit(keys[i]);
  if (i == 0) counter[0] = 7u;
}

struct Node {
  int value;
  int next;
};

__global__ void walk_list(const Node* nodes, const int* heads, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int at = heads[i]; at >= 0; at = nodes[at].next) {
    const Node* node = nodes + at;
    sum += node->value;
  }
  out[i] = sum;
}

struct State {
  float* x;
  float* v;
  float mass[4];
};

__global__ void advance(const State* state, float dt, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    state->v[i] += dt / state->mass[i % 4];
    state->x[i] += state->v[i] * dt;
  }
}
