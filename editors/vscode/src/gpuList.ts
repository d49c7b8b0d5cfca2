// The list of GPUs to choose from: recent ones, then the families as the server lists them. Knows nothing of VS Code, so that it can
// be tested by itself.

export interface Profile {
  id: string;
  name: string;
  vendor: string;
  architecture: string;
  figures: Record<string, { value: unknown } | undefined>;
}

/** A GPU, or the title above some. */
export interface GpuEntry {
  label: string;
  description?: string;
  detail?: string;
  id?: string;
}

/** How many GPUs are recent. */
const MOST_RECENT = 3;

/** `recent`: ids, the newest first. The one in use is marked. */
export function listed(gpus: Profile[], current: string | undefined, recent: readonly string[]): GpuEntry[] {
  const entry = (gpu: Profile): GpuEntry => ({
    label: gpu.id === current ? `$(check) ${gpu.id}` : gpu.id,
    description: gpu.name,
    detail: keyFigures(gpu),
    id: gpu.id,
  });
  const first = [...(current === undefined ? [] : [current]), ...recent.filter((id) => id !== current)]
    .map((id) => gpus.find((gpu) => gpu.id === id))
    .filter((gpu) => gpu !== undefined)
    .slice(0, MOST_RECENT);
  const entries: GpuEntry[] = first.length === 0 ? [] : [{ label: "recent" }, ...first.map(entry)];
  let family: string | undefined;
  for (const gpu of gpus) {
    const own = `${gpu.vendor} ${gpu.architecture}`;
    if (own !== family) entries.push({ label: own });
    family = own;
    entries.push(entry(gpu));
  }
  return entries;
}

/** The ids after one was chosen. */
export function remembered(recent: readonly string[], id: string): string[] {
  return [id, ...recent.filter((other) => other !== id)].slice(0, MOST_RECENT);
}

function keyFigures(gpu: Profile): string {
  const figure = (name: string, unit: string) => {
    const value = gpu.figures[name]?.value;
    return typeof value === "number" ? [`${value} ${unit}`] : [];
  };
  return [
    `${gpu.vendor} ${gpu.architecture}`,
    ...figure("sms", "SMs"),
    ...figure("sm_clock_mhz", "MHz"),
    ...figure("dram_bandwidth_gb_s", "GB/s"),
  ].join(" · ");
}
