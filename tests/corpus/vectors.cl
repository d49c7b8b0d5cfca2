// kernels: saxpy4 pack norms swizzled tail
// OpenCL vectors: literals, components, vload and vstore.
__kernel void saxpy4(const float a, __global const float4 *x, __global float4 *y) {
  const size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}

__kernel void pack(__global const uchar *red, __global const uchar *green,
                   __global const uchar *blue, __global uchar4 *out) {
  const int i = get_global_id(0);
  out[i] = (uchar4)(red[i], green[i], blue[i], 255);
}

__kernel void norms(__global const float *in, __global float *out, const int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const float3 v = vload3(i, in);
  out[i] = sqrt(dot(v, v));
}

__kernel void swizzled(__global const float8 *in, __global float4 *out) {
  const int i = get_global_id(0);
  const float8 v = in[i];
  float4 r;
  r.xy = v.s01 + v.s45;
  r.zw = v.hi.zw;
  out[i] = r.wzyx;
  out[i].x = v.s7;
}

__kernel void tail(__global const int *in, __global int *out, const uint n) {
  const uint i = get_global_id(0) * 4;
  if (i + 4 <= n) {
    const int4 v = vload4(0, in + i);
    vstore4(v * 2, 0, out + i);
  } else {
    for (uint k = i; k < n; k++) out[k] = in[k] * 2;
  }
}
