// The OpenCL twin of particles.cu. A kernel argument may not hold pointers, so the structure of
// arrays comes as one parameter for each field that the step needs, in the order of the fields.

typedef struct {
  float x, y, z;
  float vx, vy, vz;
  float mass;
  float charge;
} Particle;

// Neighbouring work-items read fields sizeof(Particle) apart.
// warplens: block=256 grid=4096 n=1048576
__kernel void move_aos(__global Particle *particles, const int n, const float dt) {
  const int i = get_global_id(0);
  if (i >= n) return;
  particles[i].x += particles[i].vx * dt;
  particles[i].y += particles[i].vy * dt;
  particles[i].z += particles[i].vz * dt;
}

// The three components of a vector, each from its own array.
// warplens: block=256 grid=4096 n=1048576
__kernel void move_soa(__global float *x, __global float *y, __global float *z,
                       __global const float *vx, __global const float *vy,
                       __global const float *vz, const int n, const float dt) {
  const int i = get_global_id(0);
  if (i >= n) return;
  float3 position = (float3)(x[i], y[i], z[i]);
  const float3 velocity = (float3)(vx[i], vy[i], vz[i]);
  position += velocity * dt;
  x[i] = position.x;
  y[i] = position.y;
  z[i] = position.z;
}
