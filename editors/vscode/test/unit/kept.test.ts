import assert from "node:assert/strict";
import { test } from "node:test";
import { Kept } from "../../src/kept";

function made() {
  const memory = new Map<string, unknown>();
  const calls: object[] = [];
  const session = { execute: async (_: string, argument: object) => void calls.push(argument) };
  const kept = new Kept(session as never, {
    get: <T>(key: string) => memory.get(key) as T | undefined,
    update: async (key, value) => void memory.set(key, value),
  });
  return { kept, calls };
}

test("a kept launch is set now and whenever the server starts, until it is taken back", async () => {
  const { kept, calls } = made();
  const target = { uri: "file:///a.cu", kernel: "k" };
  await kept.keep(target, { block: [64, 1, 1] });
  assert.deepEqual(calls.splice(0), [{ ...target, block: [64, 1, 1] }]);
  await kept.restore();
  assert.deepEqual(calls.splice(0), [{ ...target, block: [64, 1, 1] }]);
  await kept.forget({ uri: "file:///a.cu", kernel: "other" });
  await kept.restore();
  assert.equal(calls.splice(0).length, 1);
  await kept.forget(target);
  await kept.restore();
  assert.deepEqual(calls, []);
});
