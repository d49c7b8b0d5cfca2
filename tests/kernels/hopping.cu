// The hopping term of Wilson's lattice Dirac operator, the innermost work of lattice QCD: a site's new
// spinor is gathered from its eight neighbours, each projected to half a spinor (2 spins x 3
// colours), carried over the link by an SU(3) matrix and expanded again. The same numbers as an array
// of structures and as a structure of arrays.
//
// The lattice is 8 x 8 x 8 x n, periodic. REAL is the type of every number: -DREAL=float for the
// other precision.
#include <complex>

#include "harness.cuh"

#ifndef REAL
#define REAL double
#endif

constexpr int SPINOR = 24;     // 4 spins x 3 colours x (real, imaginary)
constexpr int LINKS = 4 * 18;  // 4 directions x 3 x 3 colours x (real, imaginary)
constexpr int SLICE = 512;     // sites of equal time

// Where a number of a site lies.
#define SPINOR_AT(site, element) (BY_FIELD ? (element) * sites + (site) : (site) * SPINOR + (element))
#define LINK_AT(site, element) (BY_FIELD ? (element) * sites + (site) : (site) * LINKS + (element))

// The parts of i^PHASE (re + i im).
template <int PHASE>
__device__ REAL turned_re(REAL re, REAL im) {
  return PHASE == 0 ? re : PHASE == 1 ? -im : PHASE == 2 ? -re : im;
}
template <int PHASE>
__device__ REAL turned_im(REAL re, REAL im) {
  return PHASE == 0 ? im : PHASE == 1 ? re : PHASE == 2 ? -im : -re;
}

// One neighbour's part. The projection adds i^PHASE0 times spin PARTNER0 to spin 0 and i^PHASE1 times
// spin PARTNER1 to spin 1; backwards along a link goes its adjoint.
template <bool BY_FIELD, int PARTNER0, int PARTNER1, int PHASE0, int PHASE1, bool BACKWARDS>
__device__ void add_neighbour(const REAL* spinors, const REAL* links, int from, int link_site,
                              int direction, int sites, REAL (&sum)[SPINOR]) {
  constexpr int BACK0 = (4 - PHASE0) % 4;
  constexpr int BACK1 = (4 - PHASE1) % 4;
  REAL upper[12];
#pragma unroll
  for (int c = 0; c < 6; c += 2) {
    const REAL re0 = spinors[SPINOR_AT(from, PARTNER0 * 6 + c)];
    const REAL im0 = spinors[SPINOR_AT(from, PARTNER0 * 6 + c + 1)];
    const REAL re1 = spinors[SPINOR_AT(from, PARTNER1 * 6 + c)];
    const REAL im1 = spinors[SPINOR_AT(from, PARTNER1 * 6 + c + 1)];
    upper[c] = spinors[SPINOR_AT(from, c)] + turned_re<PHASE0>(re0, im0);
    upper[c + 1] = spinors[SPINOR_AT(from, c + 1)] + turned_im<PHASE0>(re0, im0);
    upper[c + 6] = spinors[SPINOR_AT(from, c + 6)] + turned_re<PHASE1>(re1, im1);
    upper[c + 7] = spinors[SPINOR_AT(from, c + 7)] + turned_im<PHASE1>(re1, im1);
  }
#pragma unroll
  for (int row = 0; row < 3; ++row) {
    REAL up_re = 0.0, up_im = 0.0, down_re = 0.0, down_im = 0.0;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const int element = direction * 18 + (BACKWARDS ? k * 6 + row * 2 : row * 6 + k * 2);
      const REAL re = links[LINK_AT(link_site, element)];
      const REAL stored_im = links[LINK_AT(link_site, element + 1)];
      const REAL im = BACKWARDS ? -stored_im : stored_im;
      up_re += re * upper[2 * k];
      up_re -= im * upper[2 * k + 1];
      up_im += re * upper[2 * k + 1];
      up_im += im * upper[2 * k];
      down_re += re * upper[2 * k + 6];
      down_re -= im * upper[2 * k + 7];
      down_im += re * upper[2 * k + 7];
      down_im += im * upper[2 * k + 6];
    }
    sum[2 * row] += up_re;
    sum[2 * row + 1] += up_im;
    sum[2 * row + 6] += down_re;
    sum[2 * row + 7] += down_im;
    sum[PARTNER0 * 6 + 2 * row] += turned_re<BACK0>(up_re, up_im);
    sum[PARTNER0 * 6 + 2 * row + 1] += turned_im<BACK0>(up_re, up_im);
    sum[PARTNER1 * 6 + 2 * row] += turned_re<BACK1>(down_re, down_im);
    sum[PARTNER1 * 6 + 2 * row + 1] += turned_im<BACK1>(down_re, down_im);
  }
}

template <bool BY_FIELD>
__device__ void hop(const REAL* spinors, const REAL* links, REAL* out, int sites) {
  const int site = blockIdx.x * blockDim.x + threadIdx.x;
  if (site >= sites) return;
  const int x_up = (site & ~7) | ((site + 1) & 7);
  const int x_down = (site & ~7) | ((site + 7) & 7);
  const int y_up = (site & ~56) | ((site + 8) & 56);
  const int y_down = (site & ~56) | ((site + 56) & 56);
  const int z_up = (site & ~448) | ((site + 64) & 448);
  const int z_down = (site & ~448) | ((site + 448) & 448);
  const int t_up = site + SLICE < sites ? site + SLICE : site + SLICE - sites;
  const int t_down = site >= SLICE ? site - SLICE : site - SLICE + sites;

  REAL sum[SPINOR] = {};
  add_neighbour<BY_FIELD, 3, 2, 1, 1, false>(spinors, links, x_up, site, 0, sites, sum);
  add_neighbour<BY_FIELD, 3, 2, 3, 3, true>(spinors, links, x_down, x_down, 0, sites, sum);
  add_neighbour<BY_FIELD, 3, 2, 0, 2, false>(spinors, links, y_up, site, 1, sites, sum);
  add_neighbour<BY_FIELD, 3, 2, 2, 0, true>(spinors, links, y_down, y_down, 1, sites, sum);
  add_neighbour<BY_FIELD, 2, 3, 1, 3, false>(spinors, links, z_up, site, 2, sites, sum);
  add_neighbour<BY_FIELD, 2, 3, 3, 1, true>(spinors, links, z_down, z_down, 2, sites, sum);
  add_neighbour<BY_FIELD, 2, 3, 0, 0, false>(spinors, links, t_up, site, 3, sites, sum);
  add_neighbour<BY_FIELD, 2, 3, 2, 2, true>(spinors, links, t_down, t_down, 3, sites, sum);
#pragma unroll
  for (int e = 0; e < SPINOR; ++e) out[SPINOR_AT(site, e)] = sum[e];
}

// Lanes side by side read 24 (a spinor) or 72 numbers (a site's links) apart: nothing coalesces.
// warplens: grid=128 block=64 sites=8192
__global__ void hopping_aos(const REAL* __restrict__ spinors, const REAL* __restrict__ links,
                            REAL* __restrict__ out, int sites) {
  hop<false>(spinors, links, out, sites);
}

// Lanes side by side read neighbouring numbers, turned within a row of eight along x.
// warplens: grid=128 block=64 sites=8192
__global__ void hopping_soa(const REAL* __restrict__ spinors, const REAL* __restrict__ links,
                            REAL* __restrict__ out, int sites) {
  hop<true>(spinors, links, out, sites);
}

namespace {

using Number = std::complex<double>;

// gamma_mu of the projections above, by row and column of spin; t last.
void gamma(int mu, Number (&matrix)[4][4]) {
  const Number i(0, 1);
  const Number upper[4][2] = {{i, i}, {1, -1}, {i, -i}, {1, 1}};
  const int partner = mu < 2 ? 3 : 2;
  for (auto& row : matrix) std::fill(row, row + 4, Number(0));
  for (int spin = 0; spin < 2; ++spin) {
    const int other = spin == 0 ? partner : 5 - partner;
    matrix[spin][other] = upper[mu][spin];
    matrix[other][spin] = std::conj(upper[mu][spin]);
  }
}

// By site, and every sum unrolled: (1 + gamma) U psi(up) + (1 - gamma) U^dagger psi(down).
std::vector<double> reference(const std::vector<double>& spinors, const std::vector<double>& links,
                              int sites) {
  const int steps[4] = {1, 8, 64, SLICE};
  std::vector<double> out(spinors.size());
  for (int site = 0; site < sites; ++site) {
    Number sum[4][3] = {};
    for (int mu = 0; mu < 4; ++mu) {
      Number g[4][4];
      gamma(mu, g);
      for (const int sign : {1, -1}) {
        const int side = mu < 3 ? 8 : sites / SLICE;
        const int here = site / steps[mu] % side;
        const int there = (here + sign + side) % side;
        const int from = site + (there - here) * steps[mu];
        const double* u = &links[static_cast<size_t>(sign > 0 ? site : from) * LINKS + mu * 18];
        const double* psi = &spinors[static_cast<size_t>(from) * SPINOR];
        for (int spin = 0; spin < 4; ++spin) {
          Number projected[3];
          for (int c = 0; c < 3; ++c) {
            projected[c] = Number(psi[spin * 6 + c * 2], psi[spin * 6 + c * 2 + 1]);
            for (int b = 0; b < 4; ++b) {
              projected[c] += static_cast<double>(sign) * g[spin][b] *
                              Number(psi[b * 6 + c * 2], psi[b * 6 + c * 2 + 1]);
            }
          }
          for (int r = 0; r < 3; ++r) {
            for (int c = 0; c < 3; ++c) {
              const Number forwards(u[r * 6 + c * 2], u[r * 6 + c * 2 + 1]);
              const Number adjoint(u[c * 6 + r * 2], -u[c * 6 + r * 2 + 1]);
              sum[spin][r] += (sign > 0 ? forwards : adjoint) * projected[c];
            }
          }
        }
      }
    }
    for (int e = 0; e < SPINOR; e += 2) {
      out[static_cast<size_t>(site) * SPINOR + e] = sum[e / 6][e % 6 / 2].real();
      out[static_cast<size_t>(site) * SPINOR + e + 1] = sum[e / 6][e % 6 / 2].imag();
    }
  }
  return out;
}

// In the kernels' precision, by site or by element.
std::vector<REAL> laid_out(const std::vector<double>& by_site, int elements, bool by_field) {
  const size_t sites = by_site.size() / elements;
  std::vector<REAL> out(by_site.size());
  for (size_t s = 0; s < sites; ++s) {
    for (int e = 0; e < elements; ++e) {
      out[by_field ? e * sites + s : s * elements + e] = static_cast<REAL>(by_site[s * elements + e]);
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 16, 64);
  const int n = program.n;
  const int block = program.block;
  if (n < 2 || n > 512) {
    std::fprintf(stderr, "--n is the length of the lattice in time, from 2 to 512\n");
    return 2;
  }
  const int sites = n * SLICE;
  const int grid = harness::ceil_div(sites, block);
  const auto doubles = [](const std::vector<float>& from) {
    return std::vector<double>(from.begin(), from.end());
  };
  const std::vector<double> host_spinors =
      doubles(harness::ramp(static_cast<size_t>(sites) * SPINOR));
  const std::vector<double> host_links =
      doubles(harness::ramp(static_cast<size_t>(sites) * LINKS, 997));
  const std::vector<double> want = reference(host_spinors, host_links, sites);

  for (const bool by_field : {false, true}) {
    harness::DeviceBuffer<REAL> spinors(laid_out(host_spinors, SPINOR, by_field));
    harness::DeviceBuffer<REAL> links(laid_out(host_links, LINKS, by_field));
    harness::DeviceBuffer<REAL> out(want.size());
    const std::vector<REAL> expected = laid_out(want, SPINOR, by_field);
    program.run(
        by_field ? "hopping_soa" : "hopping_aos", {grid, block, 0, {{"sites", sites}}},
        [&] { out.clear(); },
        [&] {
          (by_field ? hopping_soa : hopping_aos)<<<grid, block>>>(spinors.get(), links.get(),
                                                                 out.get(), sites);
        },
        [&] {
          const std::vector<REAL> got = out.download();
          double worst = 0.0;
          for (size_t i = 0; i < got.size(); ++i) {
            const double off = std::fabs(static_cast<double>(got[i]) - expected[i]);
            const double error = off / std::max(1.0, std::fabs(static_cast<double>(expected[i])));
            if (!(error <= worst)) worst = error;
          }
          return worst;
        },
        sizeof(REAL) == 8 ? 1e-12 : 1e-4);
  }
  return program.exit_status();
}
