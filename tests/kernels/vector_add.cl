// The OpenCL twin of vector_add.cu without the template: c = a + b with neighbouring work-items 1 or
// `stride` elements apart. Both kernels work with any work-group size.

// warplens: block=256 grid=4096 n=1048576
__kernel void vector_add(__global const float *restrict a, __global const float *restrict b,
                         __global float *restrict c, const int n) {
  const int i = get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}

// The stride as an argument: the source alone does not say what a request costs.
// warplens: block=256 grid=4096 n=1048576 stride=2
__kernel void vector_add_by(__global const float *a, __global const float *b, __global float *c,
                            const int n, const int stride) {
  const int i = get_global_id(0);
  if (i < n) {
    const int at = i * stride;
    c[at] = a[at] + b[at];
  }
}
