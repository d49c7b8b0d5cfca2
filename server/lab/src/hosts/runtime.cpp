// The CUDA runtime of a program whose kernels another process runs: every call that needs the GPU becomes a message on
// standard input, which is a socket to that process. Linked with a program that nvcc compiled with -cudart none.
//
// A message: operation, two numbers, the length of what follows, that. The answer: a number, the length of what
// follows, that. All numbers have eight bytes in the machine's order.

#include <cuda_runtime_api.h>

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

enum Operation : uint64_t {
  ALLOCATE = 1,
  FREE,
  WRITE,
  READ,
  FILL,
  COPY,
  VARIABLE,
  LAUNCH,
  ARGUMENTS,
  PROPERTIES,
};

// The socket; standard input is empty for the program.
int connection() {
  static const int socket = [] {
    const int kept = dup(0);
    const int empty = open("/dev/null", O_RDONLY);
    dup2(empty, 0);
    close(empty);
    return kept;
  }();
  return socket;
}

void send_all(const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done = write(connection(), at, bytes);
    if (done <= 0) _exit(125);
    at += done;
    bytes -= static_cast<size_t>(done);
  }
}

void receive_all(void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t done = read(connection(), at, bytes);
    if (done <= 0) _exit(125);
    at += done;
    bytes -= static_cast<size_t>(done);
  }
}

struct Answer {
  uint64_t number = 0;
  std::vector<char> bytes;
};

Answer ask(Operation what, uint64_t a, uint64_t b, const void* from = nullptr, size_t bytes = 0) {
  const uint64_t head[4] = {what, a, b, bytes};
  send_all(head, sizeof head);
  send_all(from, bytes);
  uint64_t reply[2];
  receive_all(reply, sizeof reply);
  Answer answer;
  answer.number = reply[0];
  answer.bytes.resize(reply[1]);
  receive_all(answer.bytes.data(), answer.bytes.size());
  return answer;
}

uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

cudaError_t status(const Answer& answer) {
  return answer.number == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

struct Tables {
  // Kernels and variables by their addresses in the program.
  std::map<const void*, std::string> kernels;
  std::map<const void*, std::string> variables;
  // Managed memory: its bytes by address.
  std::map<void*, size_t> managed;
};

Tables& tables() {
  static Tables all;
  return all;
}

struct Configuration {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& configurations() {
  static std::vector<Configuration> all;
  return all;
}

std::string readable(const char* mangled) {
  int failed = 0;
  char* name = abi::__cxa_demangle(mangled, nullptr, nullptr, &failed);
  std::string text = failed == 0 && name != nullptr ? name : mangled;
  std::free(name);
  return text;
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared) {
  const auto found = tables().kernels.find(function);
  if (found == tables().kernels.end()) return cudaErrorInvalidDeviceFunction;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return cudaErrorInvalidConfiguration;
  }
  for (const auto& [address, bytes] : tables().managed) ask(WRITE, number(address), 0, address, bytes);
  const uint64_t shape[7] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, shared};
  std::vector<char> message(sizeof shape);
  std::memcpy(message.data(), shape, sizeof shape);
  const std::string name = readable(found->second.c_str());
  message.insert(message.end(), name.begin(), name.end());
  const Answer sizes = ask(LAUNCH, 0, 0, message.data(), message.size());
  std::vector<char> given;
  for (size_t at = 0; at + 8 <= sizes.bytes.size(); at += 8) {
    uint64_t size = 0;
    std::memcpy(&size, sizes.bytes.data() + at, 8);
    const char* from = static_cast<const char*>(arguments[at / 8]);
    given.insert(given.end(), from, from + size);
  }
  ask(ARGUMENTS, 0, 0, given.data(), given.size());
  for (const auto& [address, bytes] : tables().managed) {
    const Answer now = ask(READ, number(address), bytes);
    if (now.number == 0) std::memcpy(address, now.bytes.data(), bytes);
  }
  return cudaSuccess;
}

cudaError_t move(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      std::memmove(to, from, bytes);
      return cudaSuccess;
    case cudaMemcpyHostToDevice:
      return status(ask(WRITE, number(to), 0, from, bytes));
    case cudaMemcpyDeviceToHost: {
      const Answer answer = ask(READ, number(from), bytes);
      if (answer.number == 0) std::memcpy(to, answer.bytes.data(), bytes);
      return status(answer);
    }
    case cudaMemcpyDeviceToDevice: {
      const uint64_t length = bytes;
      return status(ask(COPY, number(to), number(from), &length, sizeof length));
    }
    default:
      return cudaErrorInvalidMemcpyDirection;
  }
}

uint64_t variable(const void* symbol) {
  const auto found = tables().variables.find(symbol);
  if (found == tables().variables.end()) return 0;
  return ask(VARIABLE, 0, 0, found->second.data(), found->second.size()).number;
}

// What the GPU is: multiprocessors, threads of a multiprocessor, shared memory of a multiprocessor and of a block,
// registers, clock in kHz, major, minor, bytes of memory.
const std::vector<uint64_t>& properties() {
  static const std::vector<uint64_t> all = [] {
    const Answer answer = ask(PROPERTIES, 0, 0);
    std::vector<uint64_t> numbers(answer.bytes.size() / 8);
    std::memcpy(numbers.data(), answer.bytes.data(), numbers.size() * 8);
    return numbers;
  }();
  return all;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  tables().kernels[host] = name;
}
void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t, int, int) {
  tables().variables[host] = readable(name);
}
char __cudaInitModule(void**) { return 0; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Configuration last = configurations().back();
  configurations().pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t) {
  return launch(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t) {
  return launch(function, grid, block, arguments, shared);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t) {
  return launch(function, grid, block, arguments, shared);
}

cudaError_t cudaMalloc(void** to, size_t bytes) {
  *to = reinterpret_cast<void*>(ask(ALLOCATE, bytes, 0).number);
  return *to != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
// The same address on both sides.
cudaError_t cudaMallocManaged(void** to, size_t bytes, unsigned) {
  const cudaError_t failed = cudaMalloc(to, bytes);
  if (failed != cudaSuccess) return failed;
  void* here = mmap(*to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (here != *to) return cudaErrorMemoryAllocation;
  tables().managed[here] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  const auto managed = tables().managed.find(address);
  if (managed != tables().managed.end()) {
    munmap(address, managed->second);
    tables().managed.erase(managed);
  }
  return address == nullptr ? cudaSuccess : status(ask(FREE, number(address), 0));
}
cudaError_t cudaMallocAsync(void** to, size_t bytes, cudaStream_t) { return cudaMalloc(to, bytes); }
cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
cudaError_t cudaMallocHost(void** to, size_t bytes) {
  *to = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** to, size_t bytes, unsigned) { return cudaMallocHost(to, bytes); }
cudaError_t cudaFreeHost(void* address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return move(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return move(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  const auto managed = tables().managed.find(to);
  if (managed != tables().managed.end()) std::memset(to, byte, bytes);
  const unsigned char value = static_cast<unsigned char>(byte);
  return status(ask(FILL, number(to), bytes, &value, 1));
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) { return cudaMemset(to, byte, bytes); }
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  const uint64_t address = variable(symbol);
  if (address == 0) return cudaErrorInvalidSymbol;
  return move(reinterpret_cast<void*>(address + offset), from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  const uint64_t address = variable(symbol);
  if (address == 0) return cudaErrorInvalidSymbol;
  return move(to, reinterpret_cast<const void*>(address + offset), bytes, kind);
}
cudaError_t cudaGetSymbolAddress(void** to, const void* symbol) {
  *to = reinterpret_cast<void*>(variable(symbol));
  return *to != nullptr ? cudaSuccess : cudaErrorInvalidSymbol;
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* left, size_t* all) {
  *left = *all = properties()[8];
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
  const std::vector<uint64_t>& known = properties();
  std::memset(to, 0, sizeof *to);
  std::strcpy(to->name, "GPU");
  to->multiProcessorCount = static_cast<int>(known[0]);
  to->maxThreadsPerMultiProcessor = static_cast<int>(known[1]);
  to->sharedMemPerMultiprocessor = known[2];
  to->sharedMemPerBlock = known[3];
  to->regsPerBlock = to->regsPerMultiprocessor = static_cast<int>(known[4]);
  to->major = static_cast<int>(known[6]);
  to->minor = static_cast<int>(known[7]);
  to->totalGlobalMem = known[8];
  to->warpSize = 32;
  to->maxThreadsPerBlock = 1024;
  to->maxThreadsDim[0] = to->maxThreadsDim[1] = 1024;
  to->maxThreadsDim[2] = 64;
  to->maxGridSize[0] = 2147483647;
  to->maxGridSize[1] = to->maxGridSize[2] = 65535;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* to, cudaDeviceAttr attribute, int) {
  const std::vector<uint64_t>& known = properties();
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *to = static_cast<int>(known[0]); break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *to = static_cast<int>(known[1]); break;
    case cudaDevAttrMaxThreadsPerBlock: *to = 1024; break;
    case cudaDevAttrWarpSize: *to = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *to = static_cast<int>(known[3]); break;
    case cudaDevAttrComputeCapabilityMajor: *to = static_cast<int>(known[6]); break;
    case cudaDevAttrComputeCapabilityMinor: *to = static_cast<int>(known[7]); break;
    default: *to = 1; break;
  }
  return cudaSuccess;
}

// Nothing runs at another time than where it is called.
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1.0f;
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
