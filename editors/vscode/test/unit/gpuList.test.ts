import assert from "node:assert/strict";
import { test } from "node:test";
import { listed, type Profile, remembered } from "../../src/gpuList";

const gpu = (id: string, architecture: string): Profile => ({ id, name: id.toUpperCase(), vendor: "nvidia", architecture, figures: { sms: { value: 108 } } });
const gpus = [gpu("b200", "sm_100"), gpu("h100", "sm_90"), gpu("h200", "sm_90"), gpu("a100", "sm_80")];

test("recent ones come first, then families", () => {
  const labels = listed(gpus, "a100", ["h200", "a100", "gone"]).map(({ label }) => label);
  assert.deepEqual(labels, [
    "recent", "$(check) a100", "h200",
    "nvidia sm_100", "b200", "nvidia sm_90", "h100", "h200", "nvidia sm_80", "$(check) a100",
  ]);
  assert.equal(listed(gpus, undefined, [])[0]?.label, "nvidia sm_100");
  assert.equal(listed(gpus, undefined, [])[1]?.detail, "nvidia sm_100 · 108 SMs");
});

test("three are remembered, the newest first", () => {
  assert.deepEqual(remembered(["a", "b", "c"], "d"), ["d", "a", "b"]);
  assert.deepEqual(remembered(["a", "b", "c"], "b"), ["b", "a", "c"]);
});
