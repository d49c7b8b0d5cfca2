import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsOf, parseArgs, parseSize, showSize } from "../../src/launch";

test("sizes as people type them", () => {
  assert.deepEqual(parseSize("256"), [256, 1, 1]);
  assert.deepEqual(parseSize(" 32,8 "), [32, 8, 1]);
  assert.deepEqual(parseSize("32 x 8 x 2"), [32, 8, 2]);
  assert.deepEqual(parseSize("32 8"), [32, 8, 1]);
});

test("sizes that are none say why", () => {
  for (const typed of ["", "0", "32,", "a,b", "-1", "1.5", "32,0"]) assert.match(String(parseSize(typed)), /whole numbers above 0/, typed);
  assert.match(String(parseSize("1,2,3,4")), /at most three/);
});

test("a size is shown as short as it can be typed", () => {
  assert.equal(showSize([256, 1, 1]), "256");
  assert.equal(showSize([32, 8, 1]), "32,8");
  assert.equal(showSize([1, 1, 4]), "1,1,4");
  for (const typed of ["256", "32,8", "1,1,4"]) assert.equal(showSize(parseSize(typed) as [number, number, number]), typed);
});

test("arguments by name", () => {
  assert.deepEqual(parseArgs("n=1024 m=-2, k=0x10"), { n: 1024, m: -2, k: 16 });
  assert.deepEqual(parseArgs(""), {});
  assert.match(String(parseArgs("n=1.5")), /"n=1.5" is not NAME=INTEGER/);
  assert.match(String(parseArgs("n")), /NAME=INTEGER/);
  assert.match(String(parseArgs("n=99999999999999999999")), /too large/);
});

test("the arguments of a run as the server tells it", () => {
  assert.equal(argumentsOf("./main 10000 200, Makefile:55"), "10000 200");
  assert.equal(argumentsOf("./main -t a, b, warplens.toml"), "-t a, b");
  assert.equal(argumentsOf("./main, its arguments are not known"), "");
});
