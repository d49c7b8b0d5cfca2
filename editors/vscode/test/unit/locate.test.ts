import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { describe, locate, type Places } from "../../src/locate";

const WORKS = '#!/bin/sh\n[ "$1" = --version ] && echo "warplens 0.1.0"\n';

let root: string;
let places: Places;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "warplens-locate-"));
  places = {
    extension: path.join(root, "extension"),
    setting: "",
    searchPath: ["relative/folder", path.join(root, "empty"), path.join(root, "bin")].join(":"),
    home: path.join(root, "home"),
    windows: false,
  };
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function program(relative: string, script = WORKS, mode = 0o755): string {
  const file = path.join(root, relative);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, script);
  chmodSync(file, mode);
  return file;
}

test("the extension's own program comes first", async () => {
  const bundled = program("extension/server/warplens");
  places.setting = program("mine/warplens");
  program("bin/warplens");
  const { server, failures } = await locate(places);
  assert.deepEqual(server, { origin: "bundled", path: bundled, version: "warplens 0.1.0" });
  assert.deepEqual(failures, []);
});

test("then the setting's, with ~ for the home folder", async () => {
  const mine = program("home/tools/warplens");
  program("bin/warplens");
  places.setting = "~/tools/warplens";
  const { server, failures } = await locate(places);
  assert.equal(server?.origin, "setting");
  assert.equal(server?.path, mine);
  assert.deepEqual(failures.map((failure) => failure.origin), ["bundled"]);
});

test("then the first on PATH, relative folders aside", async () => {
  const onPath = program("bin/warplens");
  const { server, failures } = await locate(places);
  assert.equal(server?.origin, "PATH");
  assert.equal(server?.path, onPath);
  assert.deepEqual(failures.map(describe), [
    `bundled: ${path.join(root, "extension/server/warplens")}: there is no such file`,
    "warplens.server.path: not set",
  ]);
});

test("a program that does not run is passed over, with the reason", async () => {
  program("extension/server/warplens", "#!/bin/sh\necho no libc here >&2\nexit 3\n");
  places.setting = program("mine/other", "#!/bin/sh\necho clangd 19\n");
  program("bin/warplens");
  const { server, failures } = await locate(places);
  assert.equal(server?.origin, "PATH");
  assert.match(failures[0]?.reason ?? "", /^exit status 3: no libc here$/);
  assert.match(failures[1]?.reason ?? "", /answered "clangd 19".*not warplens/);
});

test("nothing works: every place has its reason", async () => {
  program("extension/server/warplens", WORKS, 0o644);
  places.setting = "warplens-dev";
  const { server, failures } = await locate(places);
  assert.equal(server, undefined);
  assert.deepEqual(
    failures.map(({ origin, reason }) => [origin, reason]),
    [
      ["bundled", "it may not be run (permission denied)"],
      ["setting", "not an absolute path"],
      ["PATH", "no folder of it has warplens"],
    ],
  );
});

test("a silent program is not warplens", async () => {
  program("extension/server/warplens", "#!/bin/sh\n");
  const { server, failures } = await locate(places);
  assert.equal(server, undefined);
  assert.match(failures[0]?.reason ?? "", /^answered nothing/);
});
