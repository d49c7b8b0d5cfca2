/* The micro-benchmarks of calibration through OpenCL. The installed driver is opened when this runs, so that neither its
 * headers nor its library are needed to compile it; the kernels (kernels.cl beside this) are built by the driver. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#include <time.h>
#endif

/* What is used of the OpenCL 1.2 specification. */
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef float cl_float;
typedef void* handle;
enum {
  SUCCESS = 0,
  GPU = 1 << 2,
  PROFILING = 1 << 1,
  READ_WRITE = 1,
  DEVICE_UNITS = 0x1002,
  DEVICE_GROUP = 0x1004,
  DEVICE_CLOCK = 0x100C,
  DEVICE_MEMORY = 0x101F,
  DEVICE_CACHE = 0x101E,
  DEVICE_LOCAL = 0x1023,
  DEVICE_ALLOCATION = 0x1010,
  DEVICE_NAME = 0x102B,
  DEVICE_VENDOR = 0x102C,
  DRIVER_VERSION = 0x102D,
  DEVICE_EXTENSIONS = 0x1030,
  NV_MAJOR = 0x4000,
  NV_MINOR = 0x4001,
  NV_WARP = 0x4003,
  AMD_WAVE = 0x4043,
  BUILD_LOG = 0x1183,
  PREFERRED_MULTIPLE = 0x11B3,
  EVENT_START = 0x1282,
  EVENT_END = 0x1283
};

#define FUNCTIONS(F)                                                                               \
  F(cl_int, clGetPlatformIDs, (cl_uint, handle*, cl_uint*))                                        \
  F(cl_int, clGetDeviceIDs, (handle, cl_ulong, cl_uint, handle*, cl_uint*))                        \
  F(cl_int, clGetDeviceInfo, (handle, cl_uint, size_t, void*, size_t*))                            \
  F(handle, clCreateContext, (const void*, cl_uint, const handle*, void*, void*, cl_int*))         \
  F(handle, clCreateCommandQueue, (handle, handle, cl_ulong, cl_int*))                             \
  F(handle, clCreateProgramWithSource, (handle, cl_uint, const char**, const size_t*, cl_int*))    \
  F(cl_int, clBuildProgram, (handle, cl_uint, const handle*, const char*, void*, void*))           \
  F(cl_int, clGetProgramBuildInfo, (handle, handle, cl_uint, size_t, void*, size_t*))              \
  F(handle, clCreateKernel, (handle, const char*, cl_int*))                                        \
  F(cl_int, clReleaseProgram, (handle))                                                            \
  F(cl_int, clReleaseKernel, (handle))                                                             \
  F(cl_int, clGetKernelWorkGroupInfo, (handle, handle, cl_uint, size_t, void*, size_t*))           \
  F(cl_int, clSetKernelArg, (handle, cl_uint, size_t, const void*))                                \
  F(handle, clCreateBuffer, (handle, cl_ulong, size_t, void*, cl_int*))                            \
  F(cl_int, clReleaseMemObject, (handle))                                                          \
  F(cl_int, clEnqueueWriteBuffer,                                                                  \
    (handle, handle, cl_uint, size_t, size_t, const void*, cl_uint, const handle*, handle*))       \
  F(cl_int, clEnqueueFillBuffer,                                                                   \
    (handle, handle, const void*, size_t, size_t, size_t, cl_uint, const handle*, handle*))        \
  F(cl_int, clEnqueueNDRangeKernel,                                                                \
    (handle, handle, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const handle*, \
     handle*))                                                                                     \
  F(cl_int, clFinish, (handle))                                                                    \
  F(cl_int, clGetEventProfilingInfo, (handle, cl_uint, size_t, void*, size_t*))                    \
  F(cl_int, clReleaseEvent, (handle))

#define DECLARE(result, name, arguments) static result(*name) arguments;
FUNCTIONS(DECLARE)

static void no_device(const char* why) {
  fprintf(stderr, "no GPU: %s\n", why);
  exit(3);
}

static void check(cl_int error, const char* what) {
  if (error == SUCCESS) return;
  fprintf(stderr, "%s: OpenCL error %d\n", what, (int)error);
  exit(4);
}

#ifdef _WIN32
static HMODULE library;
static void* symbol(const char* name) { return (void*)GetProcAddress(library, name); }
static void open_driver(void) {
  library = LoadLibraryA("OpenCL.dll");
  if (library == NULL) no_device("there is no OpenCL.dll");
}
static double now_us(void) {
  LARGE_INTEGER count, frequency;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  return (double)count.QuadPart * 1e6 / (double)frequency.QuadPart;
}
#else
static void* library;
static void* symbol(const char* name) { return dlsym(library, name); }
/* A driver that is there already (one that was loaded before this program) goes first. */
static void open_driver(void) {
  const char* names[] = {NULL, "libOpenCL.so.1", "libOpenCL.so",
                         "/System/Library/Frameworks/OpenCL.framework/OpenCL"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    library = dlopen(names[i], RTLD_NOW);
    if (library != NULL && symbol("clGetPlatformIDs") != NULL) return;
  }
  no_device("there is no OpenCL driver (libOpenCL.so.1)");
}
static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
#endif

static void load_driver(void) {
  open_driver();
  void* found;
#define LOAD(result, name, arguments)                             \
  found = symbol(#name);                                          \
  if (found == NULL) no_device("the OpenCL driver has no " #name); \
  memcpy(&name, &found, sizeof found);
  FUNCTIONS(LOAD)
}

static handle device, context, queue, program;
static int repetitions = 9;
/* The fraction of the work that is done: less than 1 on a simulated GPU. */
static double part = 1.0;
static cl_uint units = 1, warp = 32;
static cl_ulong cache = 0, memory = 0, allocation = 0, on_chip = 0;
static size_t group = 256;
static int doubles = 0;

static cl_ulong number(cl_uint which) {
  unsigned char bytes[8] = {0};
  size_t size = 0;
  if (clGetDeviceInfo(device, which, sizeof bytes, bytes, &size) != SUCCESS) return 0;
  if (size == sizeof(cl_uint)) {
    cl_uint value;
    memcpy(&value, bytes, sizeof value);
    return value;
  }
  cl_ulong value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

/* A text without what JSON would have to escape. */
static void text(cl_uint which, char* into, size_t size) {
  memset(into, 0, size);
  if (clGetDeviceInfo(device, which, size - 1, into, NULL) != SUCCESS) into[0] = 0;
  char* to = into;
  for (char* from = into; *from != 0; ++from) {
    if (*from != '"' && *from != '\\' && (unsigned char)*from >= ' ') *to++ = *from;
  }
  *to = 0;
}

static handle buffer(size_t bytes) {
  cl_int error;
  handle made = clCreateBuffer(context, READ_WRITE, bytes, NULL, &error);
  check(error, "clCreateBuffer");
  return made;
}

static void write_all(handle to, const void* from, size_t bytes) {
  check(clEnqueueWriteBuffer(queue, to, 1, 0, bytes, from, 0, NULL, NULL), "clEnqueueWriteBuffer");
}

static handle kernel(const char* name) {
  cl_int error;
  handle made = clCreateKernel(program, name, &error);
  check(error, name);
  return made;
}

static void argument(handle of, cl_uint at, size_t size, const void* value) {
  check(clSetKernelArg(of, at, size, value), "clSetKernelArg");
}

/* Nanoseconds of one launch, by the driver's clock. */
static double nanoseconds(handle of, size_t items, size_t local) {
  handle event = NULL;
  check(clEnqueueNDRangeKernel(queue, of, 1, NULL, &items, &local, 0, NULL, &event),
        "clEnqueueNDRangeKernel");
  check(clFinish(queue), "clFinish");
  cl_ulong from = 0, to = 0;
  check(clGetEventProfilingInfo(event, EVENT_START, sizeof from, &from, NULL), "profiling");
  check(clGetEventProfilingInfo(event, EVENT_END, sizeof to, &to, NULL), "profiling");
  check(clReleaseEvent(event), "clReleaseEvent");
  return (double)(to - from);
}

/* A line of JSON is begun, gets its figures, and is ended. */
static void begin_line(const char* name, const char* parameters, const char* unit) {
  printf("{\"bench\":\"%s\",\"parameters\":{%s},\"unit\":\"%s\",\"repetitions\":[", name, parameters,
         unit);
}
static void figure(int at, double value) { printf("%s%.9g", at == 0 ? "" : ",", value); }
static void end_line(void) {
  printf("]}\n");
  fflush(stdout);
}

/* Times a kernel again and again; a figure is scale / ns or ns * scale. */
static void sample(const char* name, const char* parameters, const char* unit, handle of, size_t items,
                   size_t local, double scale, int inverse) {
  for (int i = 0; i < 2 && part >= 1.0; ++i) nanoseconds(of, items, local);
  begin_line(name, parameters, unit);
  for (int i = 0; i < repetitions; ++i) {
    const double ns = nanoseconds(of, items, local);
    figure(i, inverse ? (ns > 0 ? scale / ns : 0) : ns * scale);
  }
  end_line();
}

static void describe(void) {
  char name[256], vendor[256], driver[128], architecture[64] = "";
  text(DEVICE_NAME, name, sizeof name);
  text(DEVICE_VENDOR, vendor, sizeof vendor);
  text(DRIVER_VERSION, driver, sizeof driver);
  const char* known = "";
  if (strstr(vendor, "NVIDIA") != NULL) {
    known = "nvidia";
    snprintf(architecture, sizeof architecture, "sm_%d%d", (int)number(NV_MAJOR), (int)number(NV_MINOR));
  } else if (strstr(vendor, "AMD") != NULL || strstr(vendor, "Advanced Micro") != NULL) {
    known = "amd";
    if (strncmp(name, "gfx", 3) == 0) snprintf(architecture, sizeof architecture, "%.*s", (int)strcspn(name, ":"), name);
  } else if (strstr(vendor, "Intel") != NULL) {
    known = "intel";
  }
  printf("{\"device\":{\"name\":\"%s\",\"vendor\":\"%s\",\"architecture\":\"%s\",\"driver\":\"%s\"", name,
         known, architecture, driver);
  printf(",\"properties\":{\"sms\":%u,\"warp_size\":%u,\"clock_khz\":%llu", units, warp,
         (unsigned long long)number(DEVICE_CLOCK) * 1000);
  printf(",\"memory_bytes\":%llu,\"l2_bytes\":%llu", (unsigned long long)memory, (unsigned long long)cache);
  printf(",\"max_threads_per_block\":%llu,\"shared_per_block\":%llu}}}\n",
         (unsigned long long)number(DEVICE_GROUP), (unsigned long long)number(DEVICE_LOCAL));
}

/* A ring over `count` words in an order that nothing can foresee; only every `apart`-th word is used. */
static uint32_t* ring(size_t count, size_t apart) {
  uint32_t* next = calloc(count * apart, sizeof *next);
  uint32_t* order = malloc(count * sizeof *order);
  if (next == NULL || order == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(4);
  }
  for (size_t i = 0; i < count; ++i) order[i] = (uint32_t)i;
  uint64_t random = 88172645463325252u;
  for (size_t i = count - 1; i > 0; --i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const size_t with = random % i;
    const uint32_t kept = order[i];
    order[i] = order[with];
    order[with] = kept;
  }
  for (size_t i = 0; i < count; ++i) next[i * apart] = order[i] * (uint32_t)apart;
  free(order);
  return next;
}

/* The difference of two lengths of chain: what a launch costs falls out. */
static void chase(const char* name, const char* of, const char* parameters, handle words, cl_uint loads) {
  handle run = kernel(of);
  handle state = buffer(sizeof(cl_uint));
  const cl_uint zero = 0, twice = 3 * loads;
  write_all(state, &zero, sizeof zero);
  argument(run, 0, sizeof words, &words);
  argument(run, 1, sizeof state, &state);
  argument(run, 2, sizeof twice, &twice);
  nanoseconds(run, 1, 1);
  begin_line(name, parameters, "ns");
  for (int i = 0; i < repetitions; ++i) {
    argument(run, 2, sizeof loads, &loads);
    const double once = nanoseconds(run, 1, 1);
    argument(run, 2, sizeof twice, &twice);
    const double all = nanoseconds(run, 1, 1);
    figure(i, all > once ? (all - once) / (twice - loads) : 0);
  }
  end_line();
  clReleaseMemObject(state);
  clReleaseKernel(run);
}

static void latencies(const char* bench) {
  char parameters[64];
  const size_t line = 32;
  size_t most = (size_t)(cache * 4 > ((cl_ulong)256 << 20) ? cache * 4 : (cl_ulong)256 << 20);
  if (most > memory / 4) most = (size_t)(memory / 4);
  if (most > allocation) most = (size_t)allocation;
  if (strcmp(bench, "latency_global") != 0) most = 4096;
  most = (size_t)((double)most * part);
  if (most < 4096) most = 4096;
  handle words = buffer(most);
  for (size_t bytes = 4096; bytes <= most; bytes *= 2) {
    const int small = strcmp(bench, "latency_global") != 0;
    uint32_t* next = small ? ring(1024, 1) : ring(bytes / 4 / line, line);
    write_all(words, next, bytes);
    free(next);
    const size_t lines = bytes / 4 / line;
    size_t loads = small || lines < 8192 ? 8192 : lines < 65536 ? lines : 65536;
    loads = (size_t)((double)loads * part) + 16;
    snprintf(parameters, sizeof parameters, "\"bytes\":%zu", bytes);
    if (small) {
      const int is_local = strcmp(bench, "latency_shared") == 0;
      chase(bench, is_local ? "chase_local" : "chase_constant", "", words, (cl_uint)loads);
      break;
    }
    chase(bench, "chase", parameters, words, (cl_uint)loads);
  }
  clReleaseMemObject(words);
}

static void instructions(void) {
  const struct {
    const char* name;
    int instructions;
  } classes[] = {{"fp32", 1}, {"fp32_multiply", 1}, {"int", 2},      {"int_mul", 1},
                 {"sfu", 1},  {"conversion", 1},    {"to_float", 1}, {"fp64", 1}};
  handle sink = buffer(sizeof(float));
  for (size_t c = 0; c < sizeof classes / sizeof *classes; ++c) {
    if (strcmp(classes[c].name, "fp64") == 0 && !doubles) continue;
    for (int chains = 1; chains <= 4; chains += 3) {
      char name[64];
      snprintf(name, sizeof name, "issue_%s_%d", classes[c].name, chains);
      handle run = kernel(name);
      const cl_int seed = 1;
      argument(run, 0, sizeof sink, &sink);
      argument(run, 1, sizeof seed, &seed);
      for (size_t warps = 1; warps * warp <= group; warps *= 2) {
        const cl_uint rounds = (cl_uint)(256 * part) + 1, more = 4 * rounds;
        const double steps = (double)(more - rounds) * 64 * chains * classes[c].instructions;
        const size_t local = warps * warp, items = local * units;
        char parameters[96];
        snprintf(parameters, sizeof parameters, "\"class\":\"%s\",\"warps\":%zu,\"chains\":%d",
                 classes[c].name, warps, chains);
        argument(run, 2, sizeof more, &more);
        nanoseconds(run, items, local);
        begin_line("instruction", parameters, "ns");
        for (int i = 0; i < repetitions; ++i) {
          argument(run, 2, sizeof rounds, &rounds);
          const double few = nanoseconds(run, items, local);
          argument(run, 2, sizeof more, &more);
          const double all = nanoseconds(run, items, local);
          figure(i, all > few ? (all - few) / steps : 0);
        }
        end_line();
      }
      clReleaseKernel(run);
    }
  }
}

/* Nanoseconds that a kernel takes longer with `more` rounds than with `few`, its argument `at`: what a launch and its
 * preparation cost falls out. */
static double longer(handle of, cl_uint at, cl_uint few, cl_uint more, size_t items, size_t local) {
  argument(of, at, sizeof few, &few);
  const double shorter = nanoseconds(of, items, local);
  argument(of, at, sizeof more, &more);
  const double longer = nanoseconds(of, items, local);
  return longer > shorter ? longer - shorter : 0;
}

/* Loads of shared memory that a kernel makes in a round, by kernels.cl. */
enum { UNROLLED = 64 };

static void conflicts(cl_uint width, cl_uint most) {
  const cl_uint rounds = (cl_uint)(32 * part) + 1, more = 4 * rounds;
  char name[32];
  snprintf(name, sizeof name, "conflicts_%u", width);
  handle run = kernel(name);
  handle sink = buffer(sizeof(float));
  argument(run, 0, sizeof sink, &sink);
  argument(run, 3, sizeof warp, &warp);
  for (cl_uint degree = 1; degree <= most; degree *= 2) {
    argument(run, 1, sizeof degree, &degree);
    for (size_t warps = 1; warps <= 16; warps *= 4) {
      const size_t local = warps * warp;
      if (local > group) continue;
      char parameters[64];
      snprintf(parameters, sizeof parameters, "\"degree\":%u,\"width\":%u,\"warps\":%zu", degree, width, warps);
      longer(run, 2, rounds, more, local, local);
      begin_line("shared_conflict", parameters, "ns");
      for (int i = 0; i < repetitions; ++i) {
        const double ns = longer(run, 2, rounds, more, local, local);
        figure(i, ns / ((double)(more - rounds) * UNROLLED * (double)warps));
      }
      end_line();
    }
  }
  clReleaseMemObject(sink);
  clReleaseKernel(run);
}

static void shared_conflicts(void) {
  /* The kernels keep 16 KiB. */
  if (on_chip < 16384) return;
  conflicts(4, 32);
  conflicts(16, 1);
}

static void atomics(void) {
  const size_t local = group < 256 ? group / warp * warp : 256;
  const size_t items = local * units * (part < 1.0 ? 1 : 4);
  const cl_uint rounds = (cl_uint)(16 * part) + 1;
  const size_t warps = items / warp;
  handle run = kernel("atomics");
  handle counters = buffer(warps * warp * sizeof(cl_uint));
  argument(run, 0, sizeof counters, &counters);
  argument(run, 3, sizeof rounds, &rounds);
  argument(run, 4, sizeof warp, &warp);
  /* The last one: all warps on one address. */
  for (cl_uint addresses = 1; addresses <= 2 * warp; addresses *= 2) {
    const int hot = addresses > warp;
    const cl_uint meeting = hot ? 1 : addresses, apart = hot ? 0 : warp;
    argument(run, 1, sizeof meeting, &meeting);
    argument(run, 2, sizeof apart, &apart);
    char parameters[64];
    snprintf(parameters, sizeof parameters, "\"addresses\":%u,\"hot\":%d", meeting, hot);
    sample("atomic", parameters, "ns", run, items, local, 1 / ((double)warps * rounds), 0);
  }
  clReleaseMemObject(counters);
  clReleaseKernel(run);
}

/* Each compute unit reads its own 16 KiB; bytes a cycle at the clock that the driver reports. */
static void bandwidth_l1(void) {
  const cl_uint chunk = 16384, moved = 0;
  const cl_uint passes = (cl_uint)(64 * part) + 1, more = 4 * passes;
  const double mhz = (double)number(DEVICE_CLOCK);
  handle data = buffer((size_t)chunk * units);
  handle sink = buffer(sizeof(float));
  for (cl_uint width = 4; width <= 16; width *= 2) {
    char name[32];
    snprintf(name, sizeof name, "read_own_%u", width);
    handle run = kernel(name);
    const cl_uint count = chunk / width;
    argument(run, 0, sizeof data, &data);
    argument(run, 1, sizeof sink, &sink);
    argument(run, 2, sizeof count, &count);
    argument(run, 4, sizeof moved, &moved);
    /* A round of four loads an item is at most the chunk. */
    for (size_t local = 128; local <= group && 4 * local <= count; local *= 2) {
      char parameters[64];
      snprintf(parameters, sizeof parameters, "\"width\":%u,\"warps\":%zu", width, local / warp);
      longer(run, 3, passes, more, local * units, local);
      begin_line("bandwidth_l1", parameters, "B/clk/SM");
      for (int i = 0; i < repetitions; ++i) {
        const double cycles = longer(run, 3, passes, more, local * units, local) * mhz / 1e3;
        figure(i, cycles > 0 ? (double)chunk * (more - passes) / cycles : 0);
      }
      end_line();
    }
    clReleaseKernel(run);
  }
  clReleaseMemObject(sink);
  clReleaseMemObject(data);
}

/* One group on each compute unit; 601 rounds as in the paper, by the difference of twice as many. */
static void departures(void) {
  enum { ROUNDS = 601, COMPUTATIONS = 8 };
  const cl_uint rounds = part < 1.0 ? (cl_uint)(ROUNDS * part) + 1 : ROUNDS, more = 2 * rounds;
  const cl_ulong least = (cl_ulong)1 << 29, wanted = cache * 16 > least ? cache * 16 : least;
  /* A power of two of words, far beyond the last cache. */
  cl_ulong words = (cl_ulong)1 << 20;
  while (words * 8 <= memory / 4 && words * 8 <= allocation && words * 4 < wanted) words *= 2;
  if (part < 1.0) words = 1 << 16;
  const cl_float seed = 1.0f;
  const cl_uint mask = (cl_uint)(words - 1);
  handle data = buffer((size_t)words * sizeof(cl_uint));
  handle sink = buffer(sizeof(float));
  const cl_uint nothing = 0;
  check(clEnqueueFillBuffer(queue, data, &nothing, sizeof nothing, 0, (size_t)words * sizeof(cl_uint), 0, NULL, NULL),
        "clEnqueueFillBuffer");
  for (cl_uint apart = 1; apart <= 32; apart *= 32) {
    for (cl_uint loads = 1; loads <= 4; loads *= 2) {
      char name[32];
      snprintf(name, sizeof name, "departure_%u", loads);
      handle run = kernel(name);
      argument(run, 0, sizeof data, &data);
      argument(run, 1, sizeof sink, &sink);
      argument(run, 2, sizeof mask, &mask);
      argument(run, 3, sizeof apart, &apart);
      argument(run, 5, sizeof seed, &seed);
      for (size_t warps = 1; warps * warp <= group; warps *= 2) {
        const size_t local = warps * warp, items = local * units;
        char parameters[160];
        /* An instruction for each computation, two around each load, three for the loop. */
        snprintf(parameters, sizeof parameters,
                 "\"loads\":%u,\"rounds\":%u,\"computations\":%u,\"warps\":%zu,\"transactions\":%u,\"bytes\":%u", loads,
                 rounds, COMPUTATIONS + 2 * loads + 3, warps, apart == 1 ? 1 : warp, 4 * warp);
        longer(run, 4, rounds, more, items, local);
        begin_line("departure", parameters, "ns");
        for (int i = 0; i < repetitions; ++i) figure(i, longer(run, 4, rounds, more, items, local));
        end_line();
        if (part < 1.0) break;
      }
      clReleaseKernel(run);
    }
  }
  clReleaseMemObject(sink);
  clReleaseMemObject(data);
}

static void barriers(void) {
  handle run = kernel("barriers");
  handle sink = buffer(sizeof(float));
  argument(run, 0, sizeof sink, &sink);
  for (size_t warps = 1; warps * warp <= group; warps *= 2) {
    const cl_uint rounds = (cl_uint)(1024 * part) + 1, more = 4 * rounds;
    const size_t local = warps * warp;
    char parameters[64];
    snprintf(parameters, sizeof parameters, "\"warps\":%zu", warps);
    argument(run, 1, sizeof more, &more);
    nanoseconds(run, local, local);
    begin_line("barrier", parameters, "ns");
    for (int i = 0; i < repetitions; ++i) {
      argument(run, 1, sizeof rounds, &rounds);
      const double few = nanoseconds(run, local, local);
      argument(run, 1, sizeof more, &more);
      const double all = nanoseconds(run, local, local);
      figure(i, all > few ? (all - few) / (more - rounds) : 0);
    }
    end_line();
  }
}

/* Microseconds of one launch of a train by wall time, as programs see them. */
static double wall_us(handle of, size_t items, size_t local, int train) {
  check(clFinish(queue), "clFinish");
  const double from = now_us();
  for (int i = 0; i < train; ++i) {
    check(clEnqueueNDRangeKernel(queue, of, 1, NULL, &items, &local, 0, NULL, NULL), "clEnqueueNDRangeKernel");
  }
  check(clFinish(queue), "clFinish");
  return (now_us() - from) / train;
}

static void launches(void) {
  handle run = kernel("nothing");
  handle sink = buffer(sizeof(float));
  argument(run, 0, sizeof sink, &sink);
  const size_t local = group < 256 ? group : 256;
  const size_t blocks[] = {1, units, (size_t)units * 64, (size_t)units * 256, (size_t)units * 1024};
  for (size_t b = 0; b < sizeof blocks / sizeof *blocks; ++b) {
    if (part < 1.0 && b > 1) break;
    const size_t items = blocks[b] * local;
    const int train = b < 3 ? 100 : 20;
    char parameters[64];
    snprintf(parameters, sizeof parameters, "\"blocks\":%zu", blocks[b]);
    nanoseconds(run, items, local);
    begin_line("launch", parameters, "us");
    for (int i = 0; i < repetitions; ++i) figure(i, wall_us(run, items, local, train));
    end_line();
  }
}

static void bandwidths(const char* bench) {
  const int l2 = strcmp(bench, "bandwidth_l2") == 0;
  const int copies = strcmp(bench, "bandwidth_copy") == 0;
  cl_ulong bytes = l2 ? cache / 4 : cache * 16;
  if (!l2 && bytes < ((cl_ulong)512 << 20)) bytes = (cl_ulong)512 << 20;
  if (l2 && bytes < 1 << 19) bytes = 1 << 19;
  if (bytes > memory / 4) bytes = memory / 4;
  if (bytes > allocation) bytes = allocation;
  bytes = (cl_ulong)((double)bytes * part) / 65536 * 65536;
  if (bytes < 65536) bytes = 65536;
  handle data = buffer((size_t)bytes);
  handle to = buffer(copies ? (size_t)bytes : sizeof(float));
  const size_t local = group < 256 ? group : 256;
  for (cl_uint width = 4; width <= 16; width *= 2) {
    char name[32];
    snprintf(name, sizeof name, copies ? "copy_%u" : "read_%u", width);
    handle run = kernel(name);
    const cl_uint count = (cl_uint)(bytes / width);
    argument(run, 0, sizeof data, &data);
    argument(run, 1, sizeof to, &to);
    argument(run, 2, sizeof count, &count);
    for (size_t blocks = 1; blocks <= 8; blocks *= 2) {
      const size_t items = local * units * blocks;
      double moved = (double)bytes * (copies ? 2 : 1);
      if (!copies) {
        const cl_uint shared = (cl_uint)l2;
        double times = l2 ? 4.0 * 1024 * 1024 * 1024 * part / ((double)bytes * units * (double)blocks) : 1;
        const cl_uint passes = times > 1 ? (cl_uint)times : 1;
        argument(run, 3, sizeof passes, &passes);
        argument(run, 4, sizeof shared, &shared);
        moved *= passes * (l2 ? (double)units * (double)blocks : 1);
      }
      char parameters[64];
      snprintf(parameters, sizeof parameters, "\"width\":%u,\"warps\":%zu", width, blocks * local / warp);
      sample(bench, parameters, "GB/s", run, items, local, moved, 1);
      if (part < 1.0) break;
    }
    clReleaseKernel(run);
  }
}

static void coalescing(void) {
  cl_ulong bytes = cache * 16 > ((cl_ulong)512 << 20) ? cache * 16 : (cl_ulong)512 << 20;
  if (bytes > memory / 4) bytes = memory / 4;
  if (bytes > allocation) bytes = allocation;
  bytes = (cl_ulong)((double)bytes * part) / 65536 * 65536;
  if (bytes < 65536) bytes = 65536;
  handle data = buffer((size_t)bytes);
  handle sink = buffer(sizeof(float));
  handle run = kernel("gather");
  const size_t local = group < 256 ? group : 256;
  argument(run, 0, sizeof data, &data);
  argument(run, 1, sizeof sink, &sink);
  const cl_uint offsets[] = {0, 1, 4, 8, 16};
  for (cl_uint stride = 1; stride <= 64; stride *= 2) {
    for (size_t o = 0; o < (stride == 1 ? 5 : 1); ++o) {
      const cl_uint count = (cl_uint)(bytes / 4 / stride) - offsets[o];
      argument(run, 2, sizeof count, &count);
      argument(run, 3, sizeof stride, &stride);
      argument(run, 4, sizeof(cl_uint), &offsets[o]);
      char parameters[64];
      snprintf(parameters, sizeof parameters, "\"stride\":%u,\"offset\":%u", stride, offsets[o]);
      sample("coalescing", parameters, "GB/s", run, local * units * 8, local, (double)count * 4, 1);
    }
  }
}

/* The kernels of a file beside this program become those that `kernel` finds. */
static void build(const char* name) {
  FILE* file = fopen(name, "rb");
  static char source[1 << 16];
  size_t size = file == NULL ? 0 : fread(source, 1, sizeof source - 1, file);
  if (size == 0) {
    fprintf(stderr, "%s cannot be read\n", name);
    exit(4);
  }
  fclose(file);
  const char* begin = source;
  cl_int error;
  if (program != NULL) check(clReleaseProgram(program), "clReleaseProgram");
  program = clCreateProgramWithSource(context, 1, &begin, &size, &error);
  check(error, "clCreateProgramWithSource");
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) != SUCCESS) {
    static char log[4096];
    clGetProgramBuildInfo(program, device, BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s: error: %s\n", name, log);
    exit(4);
  }
}

/* The linear model's measurement kernels (linear_kernels.cl), one launch each, the launch included. */
static void linear(void) {
  /* Work-items of a group, and most bytes that a kernel touches for each of them at either end. */
  enum { BLOCK = 256, WIDEST = 32 };
  /* What a kernel has beside the number of work-items. */
  enum { NOTHING, OUTPUT, BOTH };
  const struct {
    const char* name;
    int buffers;
    int doubles;
  } kernels[] = {{"lm_empty", NOTHING, 0},        {"lm_store", OUTPUT, 0},        {"lm_store_wide", OUTPUT, 0},
                 {"lm_store_widest", OUTPUT, 0},  {"lm_copy", BOTH, 0},           {"lm_copy_wide", BOTH, 0},
                 {"lm_copy_widest", BOTH, 0},     {"lm_add_four", BOTH, 0},       {"lm_load", BOTH, 0},
                 {"lm_stride_two", BOTH, 0},      {"lm_stride_two_filled", BOTH, 0}, {"lm_stride_wide", BOTH, 0},
                 {"lm_f32_add", BOTH, 0},         {"lm_f32_mul", BOTH, 0},        {"lm_f32_div", BOTH, 0},
                 {"lm_f32_special", BOTH, 0},     {"lm_f64_add", BOTH, 1},        {"lm_f64_mul", BOTH, 1},
                 {"lm_int_add", BOTH, 0},         {"lm_int_mul", BOTH, 0},        {"lm_shared_load", BOTH, 0},
                 {"lm_shared_conflict", BOTH, 0}, {"lm_shared_store", BOTH, 0},   {"lm_barrier", OUTPUT, 0},
                 {"lm_atomic", OUTPUT, 0},        {"lm_atomic_conflict", OUTPUT, 0}};
  if (group < BLOCK || on_chip < 16384) {
    fprintf(stderr, "error: the kernels need work-groups of %d and 16 KiB of local memory\n", BLOCK);
    exit(4);
  }
  build("linear_kernels.cl");
  const cl_int least = part < 1.0 ? BLOCK : 1 << 16, most = part < 1.0 ? 4 * BLOCK : 1 << 24;
  for (cl_int n = least; n <= most; n *= 4) {
    const size_t bytes = (size_t)n * WIDEST;
    if (bytes > allocation || 2 * bytes > memory / 2) break;
    handle input = buffer(bytes), output = buffer(bytes);
    /* Ones: no division of theirs takes a way of its own. */
    const cl_float one = 1.0f;
    const cl_uint nothing = 0;
    check(clEnqueueFillBuffer(queue, input, &one, sizeof one, 0, bytes, 0, NULL, NULL), "clEnqueueFillBuffer");
    check(clEnqueueFillBuffer(queue, output, &nothing, sizeof nothing, 0, bytes, 0, NULL, NULL), "clEnqueueFillBuffer");
    const int train = part < 1.0 ? 1 : n > 1 << 20 ? 4 : 20;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; ++k) {
      if (kernels[k].doubles && !doubles) continue;
      handle run = kernel(kernels[k].name);
      cl_uint at = 0;
      if (kernels[k].buffers == BOTH) argument(run, at++, sizeof input, &input);
      if (kernels[k].buffers != NOTHING) argument(run, at++, sizeof output, &output);
      argument(run, at, sizeof n, &n);
      char parameters[64];
      snprintf(parameters, sizeof parameters, "\"kernel\":\"%s\",\"n\":%d", kernels[k].name, (int)n);
      for (int i = 0; i < 2 && part >= 1.0; ++i) wall_us(run, (size_t)n, BLOCK, train);
      begin_line("linear", parameters, "s");
      for (int i = 0; i < repetitions; ++i) figure(i, wall_us(run, (size_t)n, BLOCK, train) * 1e-6);
      end_line();
      clReleaseKernel(run);
    }
    clReleaseMemObject(input);
    clReleaseMemObject(output);
  }
}

static void begin(int wanted) {
  load_driver();
  handle platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != SUCCESS || count == 0) no_device("no OpenCL platform");
  int seen = 0;
  for (cl_uint p = 0; p < count && p < 16 && device == NULL; ++p) {
    handle devices[16];
    cl_uint here = 0;
    if (clGetDeviceIDs(platforms[p], GPU, 16, devices, &here) != SUCCESS) continue;
    for (cl_uint d = 0; d < here && d < 16; ++d) {
      if (seen++ == wanted) device = devices[d];
    }
  }
  if (device == NULL) no_device(seen == 0 ? "no OpenCL platform has one" : "no device of that number");
  cl_int error;
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  check(error, "clCreateContext");
  queue = clCreateCommandQueue(context, device, PROFILING, &error);
  check(error, "clCreateCommandQueue");
  units = (cl_uint)number(DEVICE_UNITS);
  if (units == 0) units = 1;
  cache = number(DEVICE_CACHE);
  memory = number(DEVICE_MEMORY);
  allocation = number(DEVICE_ALLOCATION);
  on_chip = number(DEVICE_LOCAL);
  group = (size_t)number(DEVICE_GROUP);
  if (group > 1024) group = 1024;
  static char extensions[1 << 14];
  text(DEVICE_EXTENSIONS, extensions, sizeof extensions);
  doubles = strstr(extensions, "cl_khr_fp64") != NULL;
  build("kernels.cl");
  cl_ulong width = number(NV_WARP);
  if (width == 0) width = number(AMD_WAVE);
  if (width == 0) {
    size_t multiple = 0;
    handle any = kernel("nothing");
    clGetKernelWorkGroupInfo(any, device, PREFERRED_MULTIPLE, sizeof multiple, &multiple, NULL);
    clReleaseKernel(any);
    width = multiple;
  }
  warp = width >= 1 && width <= 128 ? (cl_uint)width : 32;
}

/* Arguments: the benchmark, the device's number, the repetitions, and for simulators the part of the work. */
int main(int argc, char** argv) {
  const char* bench = argc > 1 ? argv[1] : "";
  if (argc > 3 && atoi(argv[3]) > 0) repetitions = atoi(argv[3]);
  if (argc > 4 && atof(argv[4]) > 0) part = atof(argv[4]);
  begin(argc > 2 ? atoi(argv[2]) : 0);
  if (strcmp(bench, "device") == 0) {
    describe();
  } else if (strcmp(bench, "clock") == 0) {
    begin_line("clock", "", "MHz");
    figure(0, (double)number(DEVICE_CLOCK));
    end_line();
  } else if (strcmp(bench, "latency_global") == 0 || strcmp(bench, "latency_shared") == 0 ||
             strcmp(bench, "latency_constant") == 0) {
    latencies(bench);
  } else if (strcmp(bench, "instruction") == 0) {
    instructions();
  } else if (strcmp(bench, "shared_conflict") == 0) {
    shared_conflicts();
  } else if (strcmp(bench, "barrier") == 0) {
    barriers();
  } else if (strcmp(bench, "atomic") == 0) {
    atomics();
  } else if (strcmp(bench, "bandwidth_l1") == 0) {
    bandwidth_l1();
  } else if (strcmp(bench, "departure") == 0) {
    departures();
  } else if (strcmp(bench, "launch") == 0) {
    launches();
  } else if (strcmp(bench, "bandwidth_l2") == 0 || strcmp(bench, "bandwidth_dram") == 0 ||
             strcmp(bench, "bandwidth_copy") == 0) {
    bandwidths(bench);
  } else if (strcmp(bench, "coalescing") == 0) {
    coalescing();
  } else if (strcmp(bench, "linear") == 0) {
    linear();
  }
  return 0;
}
