// kernels: embedded_scale embedded_sum embedded_lines
// OpenCL programs in the string literals of a host program.
#include <string>

static const char* const program = R"CLC(
__kernel void embedded_scale(__global float *data, const float factor, const int n) {
  const int i = get_global_id(0);
  if (i < n) data[i] *= factor;
}

__kernel void embedded_sum(__global const float *in, __global float *out, const int n) {
  float sum = 0.0f;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    sum += in[i];
  }
  out[get_global_id(0)] = sum;
}
)CLC";

static const char* const lines =
    "__kernel void embedded_lines(__global const int *in, __global int *out) {\n"
    "  const int i = get_global_id(0);\n"
    "  out[i] = in[i] + 1;\n"
    "}\n";

std::string sources() { return std::string(program) + lines; }
