import assert from "node:assert/strict";
import { test } from "node:test";
import { describeKernel, fileOf, filtered, kernelAt, statusOf, type KernelEntry } from "../../src/kernels";

const at = { start: { line: 0, character: 0 }, end: { line: 0, character: 4 } };
const entry = (kernel: string, more: Partial<KernelEntry> = {}): KernelEntry => ({
  uri: "file:///code/my%20file.cu",
  kernel,
  range: at,
  gpu: "a100-sxm4-40gb",
  time_ms: 1.11,
  time: "1.11 ms",
  bottleneck: "memory bandwidth",
  occupancy: 0.5,
  why_impossible: null,
  findings: 0,
  best: null,
  ...more,
});

test("a filter looks at names and files, word by word, and keeps the order", () => {
  const all = [entry("transpose_naive"), entry("copy"), entry("transpose_tiled")];
  const names = (filter: string) => filtered(all, filter).map(({ kernel }) => kernel);
  assert.deepEqual(names(""), ["transpose_naive", "copy", "transpose_tiled"]);
  assert.deepEqual(names("TRANS"), ["transpose_naive", "transpose_tiled"]);
  assert.deepEqual(names("tiled my"), ["transpose_tiled"]);
  assert.deepEqual(names("other.cu"), []);
});

test("a kernel is described by its time, what bounds it and what would help", () => {
  assert.equal(describeKernel(entry("k")), "1.11 ms · memory bandwidth");
  const best = { rule: "mem/strided", gain: 4.265 };
  assert.equal(describeKernel(entry("k", { findings: 1, best })), "1.11 ms · memory bandwidth · 4.26x: mem/strided");
  assert.equal(describeKernel(entry("k", { findings: 2, bottleneck: null, time: "needs `n`" })), "needs n · 2 findings");
  assert.equal(describeKernel(entry("k", { why_impossible: "2048 threads" })), "cannot launch: 2048 threads");
});

test("files by their names", () => {
  assert.equal(fileOf("file:///code/my%20file.cu"), "my file.cu");
  assert.equal(fileOf("untitled:Untitled-1"), "untitled:Untitled-1");
  assert.equal(fileOf("file:///%E0%A4%A"), "%E0%A4%A");
});

test("the kernel at a line is the last one that begins above it in that file", () => {
  const on = (line: number) => ({ start: { line, character: 0 }, end: { line, character: 4 } });
  const all = [entry("third", { range: on(40) }), entry("first", { range: on(2) }), entry("other", { uri: "file:///b.cu", range: on(20) })];
  const name = (line: number) => kernelAt(all, "file:///code/my%20file.cu", line)?.kernel;
  assert.deepEqual([name(1), name(2), name(30), name(90)], [undefined, "first", "first", "third"]);
});

test("the status bar has the time, what bounds it and the occupancy", () => {
  assert.equal(statusOf(entry("copy")), "copy 1.11 ms · memory bandwidth · 50 %");
  assert.equal(statusOf(entry("copy", { time: null, bottleneck: null })), "copy · 50 %");
  assert.equal(statusOf(entry("copy", { time: "needs `n`" })), "copy needs n · memory bandwidth · 50 %");
  assert.equal(statusOf(entry("copy", { why_impossible: "2048 threads" })), "copy: cannot launch");
});
