// The OpenCL twin of images.cu: an image of width x height pixels of three bytes, in groups of 32 x 8.

#define BLOCK_X 32
#define BLOCK_Y 8

// warplens: grid=(219,875) width=7000 height=7000
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void sepia(
    __global const uchar *restrict in, __global uchar *restrict out, const int width,
    const int height) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x >= width || y >= height) return;
  const int at = (y * width + x) * 3;
  const float red = in[at];
  const float green = in[at + 1];
  const float blue = in[at + 2];
  out[at] = (uchar)fmin(0.393f * red + 0.769f * green + 0.189f * blue, 255.0f);
  out[at + 1] = (uchar)fmin(0.349f * red + 0.686f * green + 0.168f * blue, 255.0f);
  out[at + 2] = (uchar)fmin(0.272f * red + 0.534f * green + 0.131f * blue, 255.0f);
}

// warplens: grid=(313,1250) width=10000 height=10000
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void linear(
    __global const uchar *restrict in, __global uchar *restrict out, const int width,
    const int height) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int at = (y * width + x) * 3;
  int red = 0;
  int green = 0;
  int blue = 0;
#pragma unroll
  for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
    for (int dx = -1; dx <= 1; ++dx) {
      const int from = at + (dy * width + dx) * 3;
      red += in[from];
      green += in[from + 1];
      blue += in[from + 2];
    }
  }
  out[at] = (uchar)(red / 9);
  out[at + 1] = (uchar)(green / 9);
  out[at + 2] = (uchar)(blue / 9);
}
