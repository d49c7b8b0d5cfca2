import assert from "node:assert/strict";
import { test } from "node:test";
import { entries } from "../../src/help";

const range = { start: { line: 3, character: 2 } };

test("edits, findings and causes are one list in the server's order", () => {
  const found = entries({
    entries: [
      { kind: "finding", title: "201x: launch more blocks", gain: 201, rule: "launch/small-grid", range },
      { kind: "edit", title: "Pad `tile`", gain: 3, rule: "smem/bank-conflict", range, edit: "pad" },
      { kind: "cause", title: "1.50x: without latency, most of it in line 4", gain: 1.5, range },
      { kind: "cause", title: "1.20x: without occupancy", gain: 1.2, range: null },
    ],
  });
  assert.deepEqual(
    found.map(({ label, edit, place }) => [label, edit, place]),
    [
      ["$(search) 201x: launch more blocks", undefined, range],
      ["$(lightbulb) Pad `tile`", "pad", undefined],
      ["$(info) 1.50x: without latency, most of it in line 4", undefined, range],
      ["$(info) 1.20x: without occupancy", undefined, undefined],
    ],
  );
  assert.equal(found[1]?.description, "smem/bank-conflict");
});

test("nothing helps", () => {
  assert.deepEqual(entries({ entries: [] }), []);
});
