// Packages the extension:  npm run package [-- SERVER] [--target TARGET] [--out FILE]
//
// SERVER (or $WARPLENS_BIN) is a warplens program; it travels inside the extension, which is then marked for one platform:
// TARGET as VS Code names it (linux-x64, linux-arm64, alpine-x64, darwin-x64, darwin-arm64, win32-x64, win32-arm64), by
// default this machine's. Without SERVER the package is for every platform and uses the user's own warplens.
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { arch, env, platform } from "node:process";
import { parseArgs } from "node:util";
import { createVSIX } from "@vscode/vsce";

const TARGETS = ["linux-x64", "linux-arm64", "linux-armhf", "alpine-x64", "alpine-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { target: { type: "string" }, out: { type: "string", default: "warplens.vsix" } },
});
const server = positionals[0] ?? env.WARPLENS_BIN;
const target = values.target ?? `${platform}-${arch}`;
const fail = (message) => {
  console.error(`package: ${message}`);
  process.exit(2);
};
if (values.target !== undefined && !server) fail("a package for one platform needs its server");
if (server && !TARGETS.includes(target)) fail(`there is no platform ${target}; there are ${TARGETS.join(", ")}`);
if (server && !existsSync(server)) fail(`there is no ${server}`);

for (const folder of ["server", "schemas", "out/test"]) rmSync(folder, { recursive: true, force: true });
if (server) {
  const name = target.startsWith("win32") ? "warplens.exe" : "warplens";
  mkdirSync("server");
  copyFileSync(server, `server/${name}`);
  chmodSync(`server/${name}`, 0o755);
}
// The one that `warplens config schema` prints: a test of the repository holds them against each other.
mkdirSync("schemas");
copyFileSync("../../docs/schemas/config.schema.json", "schemas/warplens.schema.json");

await createVSIX({
  packagePath: values.out,
  // Everything the extension needs is in the bundle.
  dependencies: false,
  ...(server ? { target } : {}),
});
console.log(`package: ${values.out} ${server ? `for ${target} with ${server}` : "for every platform, without a server"}`);
