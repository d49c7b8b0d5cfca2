// kernels: blur_image look_up
// Images, samplers and program-scope constants.
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
__constant float taps[3] = {0.25f, 0.5f, 0.25f};

__kernel void blur_image(__read_only image2d_t in, __write_only image2d_t out) {
  const int2 at = (int2)(get_global_id(0), get_global_id(1));
  float4 sum = (float4)(0.0f);
  for (int k = -1; k <= 1; ++k) {
    sum += taps[k + 1] * read_imagef(in, nearest, at + (int2)(k, 0));
  }
  write_imagef(out, at, sum);
}

__kernel void look_up(__constant float *table, __global const uchar *in, __global float *out) {
  const size_t i = get_global_id(0);
  out[i] = table[in[i]];
}
