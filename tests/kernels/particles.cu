// One time step of moving particles: an array of structures of which six of eight fields are used,
// and the same particles as a structure of arrays.
#include "harness.cuh"

struct Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass;
  float charge;
};

// Neighbouring lanes read fields sizeof(Particle) apart: every sector carries 4 useful bytes of 32
// to each request.
// warplens: block=256 grid=4096 n=1048576
__global__ void move_aos(Particle* particles, int n, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  particles[i].x += particles[i].vx * dt;
  particles[i].y += particles[i].vy * dt;
  particles[i].z += particles[i].vz * dt;
}

struct Particles {
  float* x;
  float* y;
  float* z;
  float* vx;
  float* vy;
  float* vz;
  float* mass;
  float* charge;
};

// warplens: block=256 grid=4096 n=1048576
__global__ void move_soa(Particles particles, int n, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  particles.x[i] += particles.vx[i] * dt;
  particles.y[i] += particles.vy[i] * dt;
  particles.z[i] += particles.vz[i] * dt;
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, 256);
  const int n = program.n;
  const int block = program.block;
  const int grid = harness::ceil_div(n, block);
  const float dt = 0.125f;

  // Every value is a small multiple of a power of two, so one step is exact.
  std::vector<Particle> particles(n);
  for (int i = 0; i < n; ++i) {
    const float k = static_cast<float>(i % 1009);
    particles[i] = {k, k + 1.0f, k + 2.0f, k * 0.5f, 1.0f - k, 0.25f, 1.0f + i % 3, 2.0f};
  }
  constexpr int fields = sizeof(Particle) / sizeof(float);
  const size_t count = static_cast<size_t>(n) * fields;

  // The same numbers in both layouts: by particle, and field by field.
  std::vector<float> by_particle(count), by_field(count);
  std::memcpy(by_particle.data(), particles.data(), count * sizeof(float));
  for (int i = 0; i < n; ++i) {
    for (int f = 0; f < fields; ++f) {
      by_field[static_cast<size_t>(f) * n + i] = by_particle[static_cast<size_t>(i) * fields + f];
    }
  }
  std::vector<float> want_by_particle = by_particle, want_by_field = by_field;
  for (int i = 0; i < n; ++i) {
    for (int f = 0; f < 3; ++f) {
      const size_t at = static_cast<size_t>(i) * fields;
      const float moved = by_particle[at + f] + by_particle[at + f + 3] * dt;
      want_by_particle[at + f] = moved;
      want_by_field[static_cast<size_t>(f) * n + i] = moved;
    }
  }

  {
    harness::DeviceBuffer<Particle> device(particles);
    program.run(
        "move_aos", {grid, block, 0, {{"n", n}}}, [&] { device.upload(particles); },
        [&] { move_aos<<<grid, block>>>(device.get(), n, dt); },
        [&] {
          const std::vector<Particle> moved = device.download();
          std::vector<float> got(count);
          std::memcpy(got.data(), moved.data(), count * sizeof(float));
          return harness::max_error(got, want_by_particle);
        });
  }
  harness::DeviceBuffer<float> device(by_field);
  auto field = [&](int f) { return device.get() + static_cast<size_t>(f) * n; };
  const Particles soa = {field(0), field(1), field(2), field(3),
                         field(4), field(5), field(6), field(7)};
  program.run(
      "move_soa", {grid, block, 0, {{"n", n}}}, [&] { device.upload(by_field); },
      [&] { move_soa<<<grid, block>>>(soa, n, dt); },
      [&] { return harness::max_error(device.download(), want_by_field); });
  return program.exit_status();
}
