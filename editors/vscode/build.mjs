// Bundles the extension into out/extension.js; with --test the unit tests into out/test.
import { rmSync } from "node:fs";
import { build } from "esbuild";

const test = process.argv.includes("--test");
const common = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: process.argv.includes("--minify"),
  sourcemap: test ? "inline" : false,
  logLevel: "warning",
};

if (test) {
  rmSync("out/test", { recursive: true, force: true });
  await build({ ...common, entryPoints: ["test/unit/*.test.ts"], outdir: "out/test" });
} else {
  await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "out/extension.js" });
}
