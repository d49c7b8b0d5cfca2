// A sample for warplens: two transposes of a matrix, and what each costs on a GPU.
// The hints at the line ends come from the text alone. Change something and watch them.

// warplens: block=(32,32) grid=(64,64) n=2048
__global__ void transpose_naive(float* out, const float* in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    // The lanes of a warp write one column: each its own sector of device memory.
    out[x * n + y] = in[y * n + x];
}

// warplens: block=(32,32) grid=(64,64) n=2048
__global__ void transpose_tiled(float* out, const float* in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    // The lanes read one column of the tile: all from one bank. The light bulb pads the array.
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
