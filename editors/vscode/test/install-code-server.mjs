// Puts the real VS Code (code-server, the same workbench served to a browser) into a folder, from npm alone.
//
//     node install-code-server.mjs DIR      prints the path of the launcher
//
// code-server's own postinstall script wants to download Electron headers and a ripgrep build from outside the
// registry, so its scripts stay off and the few steps that matter are done here one by one. Needs Node 20, a C++
// compiler, make, python3, ripgrep, and the headers of x11, xkbfile, libsecret and krb5.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const VERSION = "4.100.3";
const MODULES = ["node-pty", "@vscode/spdlog", "native-watchdog", "@parcel/watcher", "kerberos", "@vscode/deviceid"];

const dir = path.resolve(process.argv[2] ?? ".");
const launcher = path.join(dir, "bin", "code-server");
const stamp = path.join(dir, `installed-${VERSION}`);

if (fs.existsSync(stamp) && fs.existsSync(launcher)) {
  console.log(launcher);
  process.exit(0);
}
const major = Number(process.versions.node.split(".")[0]);
if (major !== 20) fail(`code-server ${VERSION} runs on Node 20; this is Node ${process.versions.node}`);

const env = { ...process.env };
// A distribution's Node often brings its headers; with them node-gyp need not fetch any.
const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
if (fs.existsSync(path.join(prefix, "include", "node", "node.h"))) env.npm_config_nodedir = prefix;

fs.mkdirSync(path.join(dir, "bin"), { recursive: true });
if (!fs.existsSync(path.join(dir, "package.json"))) {
  fs.writeFileSync(path.join(dir, "package.json"), JSON.stringify({ name: "code-server-for-tests", private: true }));
}
npmInstall(dir, `code-server@${VERSION}`);

const root = path.join(dir, "node_modules", "code-server");
const workbench = path.join(root, "lib", "vscode");
step("argon2", () => run(path.join(dir, "node_modules", "argon2"), process.execPath, [nodePreGyp(), "rebuild", "--build-from-source"]));
npmInstall(workbench, "--omit=dev");
const gyp = path.join(globalModules(), "npm", "node_modules", "node-gyp", "bin", "node-gyp.js");
for (const name of MODULES) {
  step(name, () => run(path.join(workbench, "node_modules", name), process.execPath, [gyp, "rebuild"]), true);
}

const rg = which("rg") ?? fail("ripgrep (rg) is not on the PATH");
link(rg, path.join(workbench, "node_modules", "@vscode", "ripgrep", "bin", "rg"));
link("node_modules", path.join(workbench, "node_modules.asar"));
npmInstall(path.join(workbench, "extensions"), "--omit=dev");
// The postinstall script would have chosen these two by platform.
link("code-linux.sh", path.join(workbench, "bin", "remote-cli", "code-server"));
link("browser-linux.sh", path.join(workbench, "bin", "helpers", "browser.sh"));

const entry = path.join(root, "out", "node", "entry.js");
fs.writeFileSync(launcher, `#!/bin/sh\nexec "${process.execPath}" "${entry}" "$@"\n`, { mode: 0o755 });
execFileSync(launcher, ["--version"], { stdio: ["ignore", "ignore", "inherit"], env });
fs.writeFileSync(stamp, "");
console.log(launcher);

function npmInstall(cwd, ...args) {
  step(`npm install in ${path.relative(dir, cwd) || "."}`, () =>
    run(cwd, "npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...args]),
  );
}

function step(name, work, optional = false) {
  process.stderr.write(`code-server: ${name}\n`);
  try {
    work();
  } catch (error) {
    const text = String(error.stderr ?? error.message).split("\n").slice(-15).join("\n");
    if (!optional) fail(`${name} failed:\n${text}`);
    process.stderr.write(`code-server: ${name} was not built, going on without it\n`);
  }
}

function run(cwd, command, args) {
  execFileSync(command, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"], maxBuffer: 1 << 28 });
}

function nodePreGyp() {
  return path.join(dir, "node_modules", "@mapbox", "node-pre-gyp", "bin", "node-pre-gyp");
}

function globalModules() {
  return execFileSync("npm", ["root", "-g"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

function which(name) {
  return (process.env.PATH ?? "")
    .split(path.delimiter)
    .map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
}

function link(target, at) {
  fs.mkdirSync(path.dirname(at), { recursive: true });
  fs.rmSync(at, { force: true });
  fs.symlinkSync(target, at);
}

function fail(message) {
  console.error(`install-code-server: ${message}`);
  process.exit(1);
}
