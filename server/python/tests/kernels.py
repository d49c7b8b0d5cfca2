"""Sources that the tests ask about."""

SCALE = """
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""

# A block of BX threads, each with TILE elements `stride` apart.
TILED = """
__global__ void tiled(float* __restrict__ out, const float* __restrict__ in, int n) {
    int first = (blockIdx.x * block_size_x * TILE + threadIdx.x) * STRIDE;
    #pragma unroll
    for (int k = 0; k < TILE; k++) {
        int i = first + k * block_size_x * STRIDE;
        if (i < n) out[i] = 2.0f * in[i];
    }
}
"""
