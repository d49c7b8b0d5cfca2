import assert from "node:assert/strict";
import { test } from "node:test";
import { entries } from "../../src/help";

test("actions and causes are one list, the largest gain first", () => {
  const found = entries({
    factors: [
      { factor: "latency", speedup: 1.5 },
      { factor: "bank-conflicts", speedup: 3 },
    ],
    actions: [
      { title: "Pad `tile`", rule: "smem/bank-conflict", speedup: 3, edit: "pad" },
      { title: "Remove the barrier", rule: "sync/redundant-barrier", speedup: 1, edit: "remove" },
    ],
  });
  assert.deepEqual(
    found.map(({ label, edit }) => [label, edit]),
    [
      ["$(lightbulb) Pad `tile`", "pad"],
      ["$(info) without bank conflicts", undefined],
      ["$(info) without latency", undefined],
      ["$(lightbulb) Remove the barrier", "remove"],
    ],
  );
  assert.equal(found[1]?.description, "3.00x faster");
});

test("findings that no action cures are among them", () => {
  const range = { start: { line: 3, character: 2 } };
  const found = entries({
    factors: [{ factor: "latency", speedup: 1.5 }],
    actions: [{ title: "Pad `tile`", rule: "smem/bank-conflict", speedup: 3, edit: "pad" }],
    findings: [{ title: "201x: launch more blocks", rule: "launch/small-grid", speedup: 201, range }],
  });
  assert.deepEqual(
    found.map(({ label, place }) => [label, place]),
    [
      ["$(search) 201x: launch more blocks", range],
      ["$(lightbulb) Pad `tile`", undefined],
      ["$(info) without latency", undefined],
    ],
  );
});

test("nothing helps", () => {
  assert.deepEqual(entries({ factors: [], actions: [] }), []);
});
