import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFields } from "../../src/launch";
import { fields, figures, page, type Trial } from "../../src/trial";

const trial: Trial = {
  kernel: "saxpy<T>",
  gpu: { id: "a100-sxm4-40gb", name: "NVIDIA A100" },
  launch: { grid: [4096, 1, 1], grid_formula: null, block: [256, 1, 1], dynamic_shared_bytes: 0, grid_source: "launch-site", block_source: "launch-site" },
  arguments: [
    { name: "n", value: 1048576, given: true },
    { name: "m", value: 32, given: false },
  ],
  time: "13.5 µs",
  bottleneck: "memory bandwidth",
  occupancy: 0.5,
  limiter: "registers",
  waves: 4.7407,
  why_impossible: null,
  choices: [
    { block: [64, 1, 1], grid: [16384, 1, 1], time_ms: 0.02, time: "20.0 µs", occupancy: 0.5, now: false },
    { block: [256, 1, 1], grid: [4096, 1, 1], time_ms: 0.0135, time: "13.5 µs", occupancy: 0.5, now: true },
    { block: [1024, 1, 1], grid: [1024, 1, 1], time_ms: null, time: "cannot launch", occupancy: 0, now: false },
  ],
  stand_ins: null,
  fixed: null,
  directive: "// warplens: block=256 grid=4096",
  edit: null,
};

test("the fields begin with what something gives", () => {
  assert.deepEqual(fields(trial), { block: "256", grid: "4096", dynamicShared: "", args: "n=1048576" });
  const open = { ...trial, launch: { ...trial.launch, grid: null, dynamic_shared_bytes: 4096 } };
  assert.deepEqual(fields(open), { block: "256", grid: "", dynamicShared: "4096", args: "n=1048576" });
});

test("what is typed is what the server takes, and back", () => {
  assert.deepEqual(parseFields(fields(trial)), { block: [256, 1, 1], grid: [4096, 1, 1], args: { n: 1048576 } });
  assert.deepEqual(parseFields({ block: "32,8", dynamicShared: "4096" }), { block: [32, 8, 1], dynamic_shared_bytes: 4096 });
  assert.deepEqual(parseFields({}), {});
  assert.match(String(parseFields({ block: "0" })), /^block: .*above 0/);
  assert.match(String(parseFields({ args: "n" })), /NAME=INTEGER/);
  assert.match(String(parseFields({ dynamicShared: "-1" })), /whole number of bytes/);
});

test("the figures have the time, the waves and a bar for each block, the present one marked", () => {
  const html = figures(trial);
  for (const part of ["13.5 µs", "memory bandwidth", "occupancy 50 % (registers)", "4.74 waves", "block=256 grid=4096"]) {
    assert.ok(html.includes(part), part);
  }
  assert.equal(html.match(/<tr class="now">/g)?.length, 1);
  const widths = [...html.matchAll(/rect width="(\d+)"/g)].map(([, width]) => Number(width));
  assert.deepEqual(widths, [100, 68, 0]);
});

test("an impossible launch and a fixed block say why", () => {
  assert.match(figures({ ...trial, why_impossible: "2048 threads" }), /Cannot launch[^]*2048 threads/);
  const html = figures({ ...trial, fixed: "line 2 reads `blockIdx.x` by itself", choices: [] });
  assert.match(html, /<code>blockIdx\.x<\/code> by itself/);
  assert.doesNotMatch(html, /<table/);
});

test("a page runs its own script alone, and source is text", () => {
  const html = page({ ...trial, directive: "<script>" }, "abc");
  assert.match(html, /default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-abc'/);
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.ok(html.includes("saxpy&lt;T&gt;"));
  assert.doesNotMatch(html, /src=|href=|\son\w+=/);
});
