// Two filters of an image whose pixels are three bytes, red, green and blue: one reads a pixel, one
// its neighbours too. Lanes side by side are three bytes apart.
#include "harness.cuh"

constexpr int BLOCK_X = 32;
constexpr int BLOCK_Y = 8;

// Ages a picture: each channel of the result mixes all three.
// warplens: grid=(219,875) block=(32,8) width=7000 height=7000
__global__ void sepia(const unsigned char* __restrict__ in, unsigned char* __restrict__ out,
                      int width, int height) {
  const int x = blockIdx.x * BLOCK_X + threadIdx.x;
  const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int at = (y * width + x) * 3;
  const float red = in[at];
  const float green = in[at + 1];
  const float blue = in[at + 2];
  out[at] = (unsigned char)fminf(0.393f * red + 0.769f * green + 0.189f * blue, 255.0f);
  out[at + 1] = (unsigned char)fminf(0.349f * red + 0.686f * green + 0.168f * blue, 255.0f);
  out[at + 2] = (unsigned char)fminf(0.272f * red + 0.534f * green + 0.131f * blue, 255.0f);
}

// The mean of a pixel and its eight neighbours, for each channel; the edge is left alone.
// warplens: grid=(313,1250) block=(32,8) width=10000 height=10000
__global__ void linear(const unsigned char* __restrict__ in, unsigned char* __restrict__ out,
                       int width, int height) {
  const int x = blockIdx.x * BLOCK_X + threadIdx.x;
  const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
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
  out[at] = (unsigned char)(red / 9);
  out[at + 1] = (unsigned char)(green / 9);
  out[at + 2] = (unsigned char)(blue / 9);
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 4096, BLOCK_X * BLOCK_Y, /*fixed_block=*/true);
  const int n = program.n;
  if (n > 16384) {
    std::fprintf(stderr, "--n at most 16384: the side of the image\n");
    return 2;
  }
  const size_t count = static_cast<size_t>(n) * n * 3;
  std::vector<unsigned char> image(count), aged(count), smooth(count, 0);
  for (size_t i = 0; i < count; ++i) image[i] = static_cast<unsigned char>(i * 37 % 251);
  const float mix[3][3] = {
      {0.393f, 0.769f, 0.189f}, {0.349f, 0.686f, 0.168f}, {0.272f, 0.534f, 0.131f}};
  for (size_t i = 0; i < count; i += 3) {
    for (int c = 0; c < 3; ++c) {
      const float sum = mix[c][0] * image[i] + mix[c][1] * image[i + 1] + mix[c][2] * image[i + 2];
      aged[i + c] = static_cast<unsigned char>(std::min(sum, 255.0f));
    }
  }
  for (int y = 1; y < n - 1; ++y) {
    for (int x = 1; x < n - 1; ++x) {
      for (int c = 0; c < 3; ++c) {
        int sum = 0;
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            sum += image[(static_cast<size_t>(y + dy) * n + x + dx) * 3 + c];
          }
        }
        smooth[(static_cast<size_t>(y) * n + x) * 3 + c] = static_cast<unsigned char>(sum / 9);
      }
    }
  }

  harness::DeviceBuffer<unsigned char> in(image), out(count);
  // A fused multiplication and addition may round to the other side of a whole number.
  const auto apart = [&](const std::vector<unsigned char>& want) {
    const std::vector<unsigned char> got = out.download();
    int worst = 0;
    for (size_t i = 0; i < count; ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
    return static_cast<double>(worst);
  };
  const dim3 block(BLOCK_X, BLOCK_Y);
  const dim3 grid(harness::ceil_div(n, BLOCK_X), harness::ceil_div(n, BLOCK_Y));
  const harness::Launch with = {grid, block, 0, {{"width", n}, {"height", n}}};
  program.run(
      "sepia", with, [&] { out.clear(); },
      [&] { sepia<<<grid, block>>>(in.get(), out.get(), n, n); }, [&] { return apart(aged); }, 1.0);
  program.run(
      "linear", with, [&] { out.clear(); },
      [&] { linear<<<grid, block>>>(in.get(), out.get(), n, n); }, [&] { return apart(smooth); },
      0.0);
  return program.exit_status();
}
