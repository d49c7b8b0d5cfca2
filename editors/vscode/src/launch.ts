// What a user types for a launch. Knows nothing of VS Code, so that it can be tested by itself.

export type Size = [number, number, number];

/** What `warplens.setLaunch` and `warplens.tryLaunch` take; what is left out is left to the source. */
export interface LaunchValues {
  grid?: Size;
  block?: Size;
  dynamic_shared_bytes?: number;
  args?: Record<string, number>;
}

/** The fields of the launch panel as values; an empty one is left out. A text says what is wrong. */
export function parseFields(typed: Partial<Record<"block" | "grid" | "args" | "dynamicShared", string>>): LaunchValues | string {
  const values: LaunchValues = {};
  for (const name of ["block", "grid"] as const) {
    if ((typed[name] ?? "").trim() === "") continue;
    const size = parseSize(typed[name] ?? "");
    if (typeof size === "string") return `${name}: ${size}`;
    values[name] = size;
  }
  const args = parseArgs(typed.args ?? "");
  if (typeof args === "string") return args;
  if (Object.keys(args).length > 0) values.args = args;
  const shared = (typed.dynamicShared ?? "").trim();
  if (shared !== "") {
    if (!/^\d{1,9}$/.test(shared)) return "dynamic shared memory: a whole number of bytes";
    values.dynamic_shared_bytes = Number(shared);
  }
  return values;
}

/** `32,8` or `32 x 8` as a size; missing dimensions are 1. A text says what is wrong. */
export function parseSize(typed: string): Size | string {
  const parts = typed.trim().split(/\s*[,x×]\s*|\s+/i);
  if (parts.length > 3) return "at most three numbers";
  const numbers = parts.map((part) => (/^\d+$/.test(part) ? Number(part) : 0));
  if (numbers.some((n) => n < 1 || !Number.isSafeInteger(n))) return "one to three whole numbers above 0, such as 32,8";
  return [numbers[0] ?? 1, numbers[1] ?? 1, numbers[2] ?? 1];
}

/** `n=1024 alpha=-2` by name. A text says what is wrong. */
export function parseArgs(typed: string): Record<string, number> | string {
  const args: Record<string, number> = {};
  for (const part of typed.split(/[\s,]+/).filter((part) => part !== "")) {
    const match = /^([A-Za-z_]\w*)=(-?\d+|0[xX][0-9a-fA-F]+)$/.exec(part);
    if (match?.[1] === undefined) return `"${part}" is not NAME=INTEGER`;
    const value = Number(match[2]);
    if (!Number.isSafeInteger(value)) return `${part}: too large`;
    args[match[1]] = value;
  }
  return args;
}

/** As the user would type it: dimensions of 1 at the end are left out. */
export function showSize(size: Size): string {
  const last = size[2] !== 1 ? 3 : size[1] !== 1 ? 2 : 1;
  return size.slice(0, last).join(",");
}

/** `10000 200` of `./main 10000 200, Makefile:55`. */
export function argumentsOf(said: string): string {
  const place = said.lastIndexOf(", ");
  const line = place < 0 ? said : said.slice(0, place);
  return line.split(" ").slice(1).join(" ");
}
