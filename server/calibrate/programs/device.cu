// What the driver says of the device, and the clock that it holds under load.
#include "bench.cuh"

// Spins for a number of SM cycles.
__global__ void spin(long long cycles, long long* spent) {
  long long sum = 0;
  long long last = clock64();
  while (sum < cycles) {
    const long long step = bench::cycles_since(last);
    sum += step;
    last += step;
  }
  if (threadIdx.x == 0) spent[blockIdx.x] = sum;
}

#if AMD
using DeviceProperties = hipDeviceProp_t;
#else
using DeviceProperties = cudaDeviceProp;
#endif

static void describe(const bench::Run& run) {
  DeviceProperties properties;
  CHECK(GPU(GetDeviceProperties)(&properties, run.device));
  int driver = 0;
  int runtime = 0;
  CHECK(GPU(DriverGetVersion)(&driver));
  CHECK(GPU(RuntimeGetVersion)(&runtime));
  std::string name;
  for (const char* c = properties.name; *c != '\0'; ++c) {
    if (*c != '"' && *c != '\\' && static_cast<unsigned char>(*c) >= ' ') name += *c;
  }
#if AMD
  std::string architecture = properties.gcnArchName;
  architecture = architecture.substr(0, architecture.find(':'));
  const char* vendor = "amd";
#else
  const std::string architecture = bench::format("sm_%d%d", run.major, run.minor);
  const char* vendor = "nvidia";
#endif
  auto value = [&](bench::Attribute which) { return bench::attribute(which, run.device); };
  std::printf("{\"device\":{\"name\":\"%s\",\"vendor\":\"%s\",\"architecture\":\"%s\"", name.c_str(),
              vendor, architecture.c_str());
  std::printf(",\"driver\":\"%d.%d\",\"runtime\":\"%d.%d\",\"properties\":{", driver / 1000,
              driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  std::printf("\"sms\":%d,\"warp_size\":%d,\"l2_bytes\":%zu", run.sms, run.warp, run.l2);
  std::printf(",\"memory_bytes\":%zu", static_cast<size_t>(properties.totalGlobalMem));
  std::printf(",\"clock_khz\":%d", value(ATTRIBUTE(ClockRate, ClockRate)));
  std::printf(",\"memory_clock_khz\":%d", value(ATTRIBUTE(MemoryClockRate, MemoryClockRate)));
  std::printf(",\"memory_bus_bits\":%d", value(ATTRIBUTE(GlobalMemoryBusWidth, MemoryBusWidth)));
  std::printf(",\"max_threads_per_sm\":%d", run.threads_per_sm);
  std::printf(",\"max_threads_per_block\":%d",
              value(ATTRIBUTE(MaxThreadsPerBlock, MaxThreadsPerBlock)));
  std::printf(",\"shared_per_block\":%d",
              value(ATTRIBUTE(MaxSharedMemoryPerBlock, MaxSharedMemoryPerBlock)));
#if !AMD
  std::printf(",\"shared_per_block_opt_in\":%d",
              value(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  std::printf(",\"shared_per_sm\":%d", value(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  std::printf(",\"shared_reserved_per_block\":%d", value(cudaDevAttrReservedSharedMemoryPerBlock));
  std::printf(",\"registers_per_sm\":%d", value(cudaDevAttrMaxRegistersPerMultiprocessor));
  std::printf(",\"max_blocks_per_sm\":%d", value(cudaDevAttrMaxBlocksPerMultiprocessor));
#endif
  std::printf("}}}\n");
}

int main(int argc, char** argv) {
  const bench::Run run = bench::begin(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "device") == 0) {
    describe(run);
    return 0;
  }
  bench::Buffer<long long> spent(run.sms);
  const long long cycles = 20000000;
  auto once = [&] {
    const double ms =
        bench::milliseconds([&] { spin<<<run.sms, 256>>>(cycles, spent.data); });
    const std::vector<long long> each = spent.host();
    return static_cast<double>(*std::max_element(each.begin(), each.end())) / (ms * 1e3);
  };
  bench::print(argc > 1 ? argv[1] : "clock", "", "MHz", bench::repeat(run, once));
  return 0;
}
