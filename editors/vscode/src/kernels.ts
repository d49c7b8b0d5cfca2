// What `warplens.kernels` answers, as the entries of a tree. Knows nothing of VS Code, so that it can be tested by itself.

export interface KernelEntry {
  uri: string;
  kernel: string;
  range: { start: { line: number; character: number }; end: { line: number; character: number } };
  gpu: string;
  time_ms: number | null;
  time: string | null;
  bottleneck: string | null;
  /** From 0 to 1. */
  occupancy: number;
  why_impossible: string | null;
  findings: number;
  best: { rule: string; gain: number } | null;
}

/** Those whose name or file has every word of the filter; the order stays. */
export function filtered(kernels: KernelEntry[], filter: string): KernelEntry[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return kernels.filter(({ kernel, uri }) => {
    const text = `${kernel} ${fileOf(uri)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The name of a document's file. */
export function fileOf(uri: string): string {
  const name = uri.split("/").at(-1) ?? uri;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** `1.11 ms · memory bandwidth · 1.58x: smem/bank-conflict`. */
export function describeKernel({ time, bottleneck, best, findings, why_impossible }: KernelEntry): string {
  if (why_impossible !== null) return `cannot launch: ${why_impossible}`;
  const help = best === null ? (findings === 0 ? [] : [`${findings} finding${findings === 1 ? "" : "s"}`]) : [`${best.gain.toFixed(2)}x: ${best.rule}`];
  return [(time ?? "no estimate").replaceAll("`", ""), ...(bottleneck === null ? [] : [bottleneck]), ...help].join(" · ");
}

/** The kernel at a line of a document: the last one whose name is not below it. */
export function kernelAt(kernels: KernelEntry[], uri: string, line: number): KernelEntry | undefined {
  let here: KernelEntry | undefined;
  for (const one of kernels) {
    const start = one.range.start.line;
    if (one.uri === uri && start <= line && (here === undefined || start > here.range.start.line)) here = one;
  }
  return here;
}

/** `copy 152 µs · memory bandwidth · 100 %`: the time, what bounds it and the occupancy, for the status bar. */
export function statusOf({ kernel, time, bottleneck, occupancy, why_impossible }: KernelEntry): string {
  if (why_impossible !== null) return `${kernel}: cannot launch`;
  const took = time === null ? [kernel] : [`${kernel} ${time.replaceAll("`", "")}`];
  return [...took, ...(bottleneck === null ? [] : [bottleneck]), `${Math.round(occupancy * 100)} %`].join(" · ");
}
