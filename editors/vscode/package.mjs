// Packages the extension as warplens.vsix:  npm run package [-- SERVER]
//
// SERVER (or $WARPLENS_BIN) is a warplens program built for this machine; it travels inside the extension, which is then
// marked for this platform. Without it the .vsix is for every platform and uses the user's own warplens.
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { arch, platform } from "node:process";
import { createVSIX } from "@vscode/vsce";

const server = process.argv[2] ?? process.env.WARPLENS_BIN;
const out = "warplens.vsix";

rmSync("server", { recursive: true, force: true });
rmSync("out/test", { recursive: true, force: true });
if (server) {
  if (!existsSync(server)) {
    console.error(`package: there is no ${server}`);
    process.exit(2);
  }
  const name = platform === "win32" ? "warplens.exe" : "warplens";
  mkdirSync("server");
  copyFileSync(server, `server/${name}`);
  chmodSync(`server/${name}`, 0o755);
}

await createVSIX({
  packagePath: out,
  // Everything the extension needs is in the bundle.
  dependencies: false,
  ...(server ? { target: `${platform}-${arch}` } : {}),
});
console.log(`package: ${out} ${server ? `with ${server}` : "without a server"}`);
