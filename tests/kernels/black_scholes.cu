// Prices of European options by Black and Scholes: an option is a structure of five numbers, its two
// prices another, so that nothing coalesces; between is arithmetic.
#include "harness.cuh"

struct Option {
  float price;
  float strike;
  float years;
  float rate;
  float volatility;
};

struct Prices {
  float call;
  float put;
};

// The normal distribution up to d, by a polynomial of the fifth degree (Abramowitz and Stegun, 26.2.17).
__device__ float distribution(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float tail =
      0.39894228f * __expf(-0.5f * d * d) *
      (k * (0.31938153f +
            k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0.0f ? 1.0f - tail : tail;
}

// warplens: grid=35157 block=256 n=9000000
__global__ void black_scholes(const Option* __restrict__ options, Prices* __restrict__ prices,
                              int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float price = options[i].price;
  const float strike = options[i].strike;
  const float years = options[i].years;
  const float rate = options[i].rate;
  const float volatility = options[i].volatility;

  const float deviation = volatility * sqrtf(years);
  const float d1 =
      (__logf(price / strike) + (rate + 0.5f * volatility * volatility) * years) / deviation;
  const float above1 = distribution(d1);
  const float above2 = distribution(d1 - deviation);
  const float discounted = strike * __expf(-rate * years);
  prices[i].call = price * above1 - discounted * above2;
  prices[i].put = discounted * (1.0f - above2) - price * (1.0f - above1);
}

int main(int argc, char** argv) {
  harness::Program program(argc, argv, 1 << 20, 256);
  const int n = program.n;
  const int block = program.block;
  const int grid = harness::ceil_div(n, block);
  if (n > (1 << 26)) {
    std::fprintf(stderr, "--n at most 2^26 options\n");
    return 2;
  }
  std::vector<Option> options(n);
  std::vector<float> want(2 * static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const Option o = {5.0f + i % 1009 * 0.025f, 1.0f + i % 997 * 0.1f, 0.25f + i % 39 * 0.25f,
                      0.02f, 0.3f};
    options[i] = o;
    // By the complementary error function, in double precision.
    const auto above = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
    const double deviation = o.volatility * std::sqrt(static_cast<double>(o.years));
    const double d1 = (std::log(static_cast<double>(o.price) / o.strike) +
                       (o.rate + 0.5 * o.volatility * o.volatility) * o.years) /
                      deviation;
    const double discounted = o.strike * std::exp(-static_cast<double>(o.rate) * o.years);
    want[2 * static_cast<size_t>(i)] =
        static_cast<float>(o.price * above(d1) - discounted * above(d1 - deviation));
    want[2 * static_cast<size_t>(i) + 1] =
        static_cast<float>(discounted * above(deviation - d1) - o.price * above(-d1));
  }

  harness::DeviceBuffer<Option> in(options);
  harness::DeviceBuffer<Prices> out(n);
  program.run(
      "black_scholes", {grid, block, 0, {{"n", n}}}, [&] { out.clear(); },
      [&] { black_scholes<<<grid, block>>>(in.get(), out.get(), n); },
      [&] {
        const std::vector<Prices> prices = out.download();
        std::vector<float> got;
        for (const Prices& each : prices) {
          got.push_back(each.call);
          got.push_back(each.put);
        }
        return harness::max_error(got, want);
      },
      1e-3);
  return program.exit_status();
}
