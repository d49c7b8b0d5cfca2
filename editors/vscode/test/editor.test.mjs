// What someone sees who opens tests/kernels/transpose.cu in VS Code with the packaged extension. Started by run.sh.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { until, Workbench } from "./workbench.mjs";

const { values: given } = parseArgs({
  options: {
    "code-server": { type: "string" },
    chromium: { type: "string" },
    vsix: { type: "string" },
    repository: { type: "string" },
    keep: { type: "boolean", default: false },
  },
});

const TIME_LIMIT_MS = 10 * 60_000;
const PROBLEMS = ".markers-panel .monaco-list-row";
const STATUS = ".part.statusbar .statusbar-item";
const LENS = ".editor-instance .codelens-decoration";
const SQUIGGLE = ".editor-instance .cdr[class*='squiggly-']";

const kernels = path.join(given.repository, "tests", "kernels");
const artifacts = path.join(given.repository, "tests", "artifacts", "vscode");
const images = path.join(given.repository, "editors", "vscode", "images");
fs.rmSync(artifacts, { recursive: true, force: true });
fs.mkdirSync(artifacts, { recursive: true });
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "warplens-vscode-"));
const workspace = path.join(folder, "workspace");
fs.mkdirSync(workspace);
for (const file of ["transpose.cu", "transpose.cl", "harness.cuh"]) fs.copyFileSync(path.join(kernels, file), path.join(workspace, file));
fs.writeFileSync(path.join(workspace, "broken.hip"), "__global__ void half(float* out) { out[threadIdx.x\n");

// Line numbers are read from the file, so that it may be edited.
const source = fs.readFileSync(path.join(workspace, "transpose.cu"), "utf8");
const lineOf = (pattern, from = 0) => {
  const index = source.split("\n").findIndex((line, i) => i >= from && pattern.test(line));
  if (index < 0) throw new Error(`transpose.cu has no line ${pattern}`);
  return index + 1;
};
const tiled = lineOf(/transpose_tiled\(const/);
const declaration = lineOf(/tile\[32\]\[32\]/, tiled);
const conflict = lineOf(/= tile\[threadIdx\.x\]/, tiled);
const conflictText = source.split("\n")[conflict - 1].trim();

let passed = 0;
let failed = 0;
const failures = new Set();
let bench;

/** A picture for the README and the walkthrough: a part of the window. */
async function picture(name, selector) {
  const file = path.join(artifacts, `image-${name}.png`);
  await bench.screenshot(file, selector);
  if (!process.env.IMAGES) return;
  fs.copyFileSync(file, path.join(images, `${name}.png`));
  // The book has some of them, too.
  const inBook = path.join(given.repository, "docs", "editors", "images", `vscode-${name}.png`);
  if (fs.existsSync(inBook)) fs.copyFileSync(file, inBook);
}

/** The lens of a kernel of transpose.cu, which must be in sight. */
const lensOf = (kernel) => until(`a lens above ${kernel}`, () => bench.lensAbove(`${kernel}(const`, kernel));

async function check(name, work) {
  const shot = `${String(passed + failed + 1).padStart(2, "0")}-${name.replaceAll(/[^a-z0-9]+/gi, "-")}`;
  try {
    await work((label = shot) => bench.screenshot(path.join(artifacts, `${label}.png`)));
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    failures.add(name);
    console.log(`FAILED  ${name}\n        ${String(error.message).replaceAll("\n", "\n        ")}`);
    await bench?.screenshot(path.join(artifacts, `${shot}-FAILED.png`)).catch(() => {});
  }
}

async function finish() {
  await bench?.close();
  if (given.keep) console.log(`kept: ${folder}`);
  else fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  console.log(`screenshots: ${path.relative(given.repository, artifacts)}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}

setTimeout(() => {
  console.log(`FAILED  the whole test took more than ${TIME_LIMIT_MS / 60_000} minutes`);
  failed += 1;
  void finish();
}, TIME_LIMIT_MS).unref();

// The editor runs in a process group of its own; it must not outlive an interrupted test.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    failed += 1;
    void finish();
  });
}

const editor = { codeServer: given["code-server"], chromiumPath: given.chromium, vsix: given.vsix };
const settings = {
  "workbench.startupEditor": "none",
  "workbench.colorTheme": "Default Dark Modern",
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "editor.minimap.enabled": false,
  "git.enabled": false,
  // What is on the disk is what a check wrote or saved.
  "files.autoSave": "off",
};

try {
  bench = await Workbench.open({ ...editor, folder, workspace, settings });
} catch (error) {
  failed += 1;
  console.log(`FAILED  VS Code opens the folder\n        ${error.message}`);
  await finish();
}

await check("opens a CUDA file and shows the target GPU in the status bar", async (shot) => {
  await bench.openFile("transpose.cu");
  await bench.text(STATUS, /CUDA C\+\+/);
  await bench.text(STATUS, /a100-sxm4-40gb/);
  await shot();
});

if (failed > 0) {
  console.log("nothing else is worth trying");
  await finish();
}

await check("says once that the target is the default, and offers others", async (shot) => {
  await bench.text(STATUS, /a100-sxm4-40gb \(default\)/);
  // A toast goes after some seconds; the message stays until it is answered.
  await bench.command("Notifications: Show Notifications");
  await bench.text(".notifications-center", /predicted for a100-sxm4-40gb, the default/);
  await shot();
  await bench.page.locator(".notifications-center .monaco-button", { hasText: "Keep" }).first().click();
  await bench.noText(".notifications-center", /the default/);
  await bench.dismiss();
});

await check("inlay hints at the line ends", async (shot) => {
  // The naive store goes down a column: 32 sectors where 4 are enough.
  await bench.afterLine("if (x < n && y < n) out[x * n + y] = in[y * n + x];", /32 sectors, ideal 4/);
  await bench.cursorAt(source, conflict, "tile");
  await bench.afterLine(conflictText, /\d+ passes/);
  await shot();
});

await check("a code lens above each kernel", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  for (const kernel of ["transpose_naive", "transpose_tiled", "transpose_padded"]) {
    const lens = await lensOf(kernel);
    for (const [what, pattern] of [
      ["the target", /a100/i],
      ["a time", /\d\s?(ns|µs|us|ms|s)\b/],
      ["the occupancy", /occupancy/i],
    ]) {
      if (!pattern.test(lens)) throw new Error(`the lens of ${kernel} lacks ${what}: ${lens}`);
    }
  }
  await shot();
});

await check("a hover on the conflicting line shows the breakdown", async (shot) => {
  await bench.cursorAt(source, conflict, "tile");
  // The finding's message is in the same box; the breakdown names the kernel, its share and the ideal.
  await bench.hover(conflictText, "tile", /\d+ % of the time of transpose_tiled[^]*32 passes, ideal 1/);
  await shot();
  await bench.dismiss();
});

await check("smem/bank-conflict as a squiggle and in Problems", async (shot) => {
  await until("a squiggle", async () => (await bench.page.locator(SQUIGGLE).count()) > 0);
  await bench.command("Problems: Focus on Problems View");
  const row = await bench.text(PROBLEMS, /bank-conflict/);
  if (!/warplens/.test(row)) throw new Error(`Problems does not name warplens as the source: ${row}`);
  await shot();
});

const PAD = "the Pad action widens the array, and the diagnostic goes";
await check(PAD, async (shot) => {
  await bench.cursorAt(source, conflict, "tile[");
  await bench.action("Pad ", () => shot("pad-action"));
  await bench.cursorAt(source, declaration, "tile");
  await until("[33] in the declaration of the tiled kernel", async () => {
    const lines = await bench.lines();
    return !lines.some((line) => line.includes("tile[32][32]")) && lines.some((line) => line.includes("tile[32][33]"));
  });
  await bench.noText(PROBLEMS, /bank-conflict/);
  await bench.cursorAt(source, conflict, "tile");
  await until("no hint of 32 passes", async () => !(await bench.lines()).some((line) => /\b32(\/\d+)? passes/.test(line)));
  // It is the padded kernel by another name now, and its lens must say the same.
  await until("the lens of the padded kernel above both", async () => {
    // The edited one says what it took before as well.
    const now = async (kernel) => (await lensOf(kernel)).replace(/^.* → /, "");
    return (await now("transpose_tiled")) === (await now("transpose_padded"));
  });
  await shot();
});

await check("undo brings the diagnostic back", async () => {
  if (failures.has(PAD)) throw new Error("there is nothing to undo");
  await bench.focusEditor();
  await bench.page.keyboard.press("Control+Z");
  await bench.text(PROBLEMS, /bank-conflict/);
});

await check("a warplens.toml takes effect at once, and so does its end", async () => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  const file = path.join(workspace, "warplens.toml");
  fs.writeFileSync(file, 'gpu = "v100-sxm2-16gb"\n');
  await bench.text(STATUS, /v100-sxm2-16gb/);
  await until("the lens names the project's target", async () => /v100/i.test(await lensOf("transpose_tiled")));
  fs.rmSync(file);
  await bench.text(STATUS, /a100-sxm4-40gb/);
  await until("the lens names the default again", async () => /a100/i.test(await lensOf("transpose_tiled")));
});

await check("Select the Target GPU changes the status bar and the lenses", async (shot) => {
  await bench.focusEditor();
  await bench.command("warplens: Select the Target GPU…");
  await bench.find("Now ", "h100-sxm5");
  await shot("gpu-list");
  await bench.answer("h100-sxm5");
  await bench.text(STATUS, /h100-sxm5/);
  await until("the lens names the new target", async () => /h100/i.test(await lensOf("transpose_tiled")));
  await shot();
});

await check("Set the Launch asks for block, grid and arguments, and the lens follows", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  const before = await lensOf("transpose_tiled");
  await bench.command("warplens: Set the Launch of the Kernel at the Cursor…");
  await bench.box(/transpose_tiled[^]*Threads of a block/);
  await bench.answer("32,9,9,9");
  await bench.box(/at most three numbers/);
  await bench.answer("32,8");
  await bench.box(/Blocks of the grid/);
  await bench.answer("256,256");
  await bench.box(/Values of integer parameters/);
  await shot("set-launch");
  await bench.answer("n=8192");
  await until("another prediction for the tiled kernel", async () => (await lensOf("transpose_tiled")) !== before);
  // All left empty takes it back.
  await bench.command("warplens: Set the Launch of the Kernel at the Cursor…");
  for (const question of [/Threads of a block/, /Blocks of the grid/, /Values of integer parameters/]) {
    await bench.box(question);
    await bench.answer("");
  }
  await until("the prediction as it was", async () => (await lensOf("transpose_tiled")) === before);
});

await check("Set How the Program Is Run asks for its arguments", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  await bench.command("warplens: Set How the Program Is Run…");
  await bench.box(/Their arguments, as in a shell/);
  await shot("set-run");
  await bench.answer("-n 4096");
});

/** Types into a field of the launch panel, as its user would. */
async function typeInPanel(name, value) {
  for (const frame of bench.page.frames()) {
    const field = frame.locator(`form input[name="${name}"]`);
    if ((await field.count().catch(() => 0)) === 0) continue;
    await field.fill(value);
    return;
  }
  throw new Error(`the panel has no field ${name}`);
}
async function clickInPanel(selector) {
  for (const frame of bench.page.frames()) {
    const button = frame.locator(selector);
    if ((await button.count().catch(() => 0)) > 0) return button.first().click();
  }
  throw new Error(`the panel has no ${selector}`);
}

await check("a hover on a launch gives its time, its waves and why there is one block", async (shot) => {
  const launch = lineOf(/transpose_tiled<<</);
  await bench.cursorAt(source, launch, "<<<");
  await bench.hover("transpose_tiled<<<", "<<<", /transpose_tiled on [^]*wave[^]*share memory/);
  await shot();
});

await check("the launch panel predicts while one types, and writes the directive", async (shot) => {
  const text = [
    "// A line for each element.",
    "__global__ void saxpy(float *y, const float *x, float a, int n) {",
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;",
    "  if (i < n) y[i] += a * x[i];",
    "}",
    "",
  ].join("\n");
  fs.writeFileSync(path.join(workspace, "saxpy.cu"), text);
  await bench.openFile("saxpy.cu");
  // The lens leads there: nothing gives n.
  await bench.text(LENS, /set n…|set `n`…/);
  await bench.cursorAt(text, 2, "saxpy");
  await bench.command("warplens: Open the Launch Panel of the Kernel at the Cursor");
  const rows = () => [...document.querySelectorAll("#figures tbody tr")].map((row) => row.textContent);
  const offered = await bench.inPage(/Launch of saxpy[^]*occupancy/, rows);
  if (offered.length < 5) throw new Error(`blocks: ${offered}`);
  await typeInPanel("args", "n=1048576");
  await typeInPanel("grid", "8192");
  await typeInPanel("block", "128");
  await bench.inPage(/block=128 grid=8192 n=1048576/, () => true);
  const time = () => document.querySelector(".time").textContent;
  const before = await until("a number", async () => {
    const now = await bench.inPage(/Launch of saxpy/, time);
    return /^[\d.]+ µs$/.test(now) && now;
  });
  await shot();
  await typeInPanel("block", "0");
  await bench.inPage(/whole numbers above 0/, () => true);
  // A bar of the curve takes its block.
  await typeInPanel("block", "128");
  await bench.inPage(/block=128 grid=8192/, () => true);
  await clickInPanel('button[data-block="1024"]');
  await bench.inPage(/block=1024 grid=1024 n=1048576/, () => true);
  await typeInPanel("block", "128");
  await typeInPanel("grid", "8192");
  await bench.inPage(/block=128 grid=8192 n=1048576/, () => true);
  await clickInPanel('button[data-do="write"]');
  await bench.closeTab(/Launch of saxpy/);
  await bench.openFile("saxpy.cu");
  await bench.text(".editor-instance .view-lines", /\/\/ warplens: block=128 grid=8192 n=1048576/);
  await until("the time of the panel in the lens", async () => (await bench.text(LENS, /µs/)).includes(before));
  await bench.page.keyboard.press("Control+S");
  await bench.closeTab(/saxpy\.cu/);
  fs.rmSync(path.join(workspace, "saxpy.cu"));
  await bench.openFile("transpose.cu");
});

await check("the kernels of the open files are listed by time, and a click goes to one", async (shot) => {
  await bench.openFile("transpose.cu");
  await bench.command("Explorer: Focus on GPU Kernels View");
  const row = ".pane-body .monaco-list-row";
  await bench.text(row, /transpose_tiled.*µs.*bank-conflict/);
  await shot();
  await bench.page.locator(row, { hasText: "transpose_padded" }).first().click();
  await bench.text(STATUS, new RegExp(`Ln ${lineOf(/transpose_padded\(const/)}, Col`));
  await bench.command("warplens: Go to a Kernel of the Open Files…");
  await bench.box(/transpose_naive[^]*transpose\.cu/);
  await bench.answer("tiled");
  await bench.text(STATUS, new RegExp(`Ln ${tiled}, Col`));
});

await check("two kernels stand side by side", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  await bench.command("warplens: Compare the Kernel at the Cursor with Another…");
  await bench.box(/Compare transpose_tiled with/);
  await bench.answer("padded");
  await bench.preview(/transpose_padded is [\d.]+x faster than transpose_tiled/);
  await shot();
  await bench.closeTab(/transpose_tiled and transpose_padded/);
  await bench.openFile("transpose.cu");
});

await check("a newcomer opens a bad transposition, makes the best fix and sees the new time, in under a minute", async (shot) => {
  const started = Date.now();
  const bad = fs.readFileSync(path.join(workspace, "transpose.cu"), "utf8").split("\n");
  const first = bad.findIndex((line) => line.includes("transpose_tiled(const")) - 1;
  const last = bad.findIndex((line, at) => at > first && line === "}");
  fs.writeFileSync(path.join(workspace, "newcomer.cu"), `${bad.slice(first, last + 1).join("\n")}\n`);
  await bench.openFile("newcomer.cu");
  await bench.page.locator(SQUIGGLE).first().waitFor();
  await bench.text(PROBLEMS, /bank-conflict/);
  const milliseconds = (text) => {
    const [, number, unit] = /([\d.]+) (µs|ms)$/.exec(text) ?? [];
    return Number(number) * (unit === "ms" ? 1 : 1e-3);
  };
  const lens = await bench.text(LENS, /µs · shared memory/);
  const before = milliseconds(lens.split(" · ")[0]);
  await bench.command("warplens: Show the Cheapest Fixes in This File");
  const offered = await bench.box(/Fixes in newcomer\.cu[^]*x faster/);
  const promised = Number(/([\d.]+)x faster/.exec(offered)[1]);
  await bench.page.keyboard.press("Enter");
  const change = await bench.text(LENS, /→/);
  const after = milliseconds(change.split(" · ")[0]);
  await shot();
  if (!(Math.abs(before / after / promised - 1) < 0.02)) throw new Error(`${before} → ${after}, promised ${promised}x`);
  const seconds = (Date.now() - started) / 1000;
  if (seconds >= 60) throw new Error(`${seconds} s`);
  await bench.page.keyboard.press("Control+S");
  await bench.closeTab(/newcomer\.cu/);
  fs.rmSync(path.join(workspace, "newcomer.cu"));
  await bench.openFile("transpose.cu");
});

await check("the cost breakdown opens as a page", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  await bench.command("warplens: Show the Cost Breakdown of the Kernel at the Cursor");
  await bench.preview(/transpose_tiled[^]*passes/i);
  await shot();
});

await check("the gutter shows which lines cost most", async (shot) => {
  await bench.cursorAt(source, conflict, "tile");
  await until("bars of several lengths, one of them the longest", async () => {
    const marks = await bench.marks();
    return Object.keys(marks).length > 1 && marks["heat-5"] > 0;
  });
  await shot();
  await bench.command("warplens: Toggle the Heat Map");
  await until("no bars", async () => Object.keys(await bench.marks()).length === 0);
  await bench.command("warplens: Toggle the Heat Map");
  await until("bars again", async () => (await bench.marks())["heat-5"] > 0);
});

await check("a category of inlay hints can be left out", async () => {
  await bench.cursorAt(source, conflict, "tile");
  await bench.afterLine(conflictText, /passes, ideal 1 · \d+ % of time/);
  bench.setForFolder({ "warplens.inlayHints.share": false });
  await bench.afterLine(conflictText, /^\s*\d+ passes, ideal 1\s*$/);
  bench.setForFolder({ "warplens.inlayHints.share": null, "warplens.inlayHints.shared": false });
  await bench.afterLine(conflictText, /^\s*\d+ % of time\s*$/);
  bench.setForFolder({ "warplens.inlayHints.shared": null });
  await bench.afterLine(conflictText, /passes, ideal 1 · \d+ % of time/);
});

/** What a page says of itself, from within. */
const inspect = () => ({
  titles: [...document.querySelectorAll("h3")].map((title) => title.textContent),
  plots: document.querySelectorAll("svg.plot").length,
  outside: document.querySelectorAll("script, link, iframe, img, [src], a:not([href^='#'])").length,
  handlers: [...document.querySelectorAll("*")].filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on"))).length,
  policies: [...document.querySelectorAll("meta[http-equiv='Content-Security-Policy']")].map((policy) => policy.content),
  background: getComputedStyle(document.body).backgroundColor,
  // Text that runs out of its picture.
  clipped: [...document.querySelectorAll("svg.plot text")].filter((text) => {
    const own = text.getBoundingClientRect();
    const all = text.closest("svg").getBoundingClientRect();
    return own.width > 0 && (own.left < all.left - 1 || own.right > all.right + 1);
  }).map((text) => text.textContent),
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth + 1,
});
const editorBackground = () =>
  bench.page.evaluate(() => getComputedStyle(document.querySelector(".editor-instance .monaco-editor-background")).backgroundColor);

await check("the report has every picture, in the editor's colours, and nothing from elsewhere", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  await bench.command("warplens: Show the Report of This File");
  await bench.text(".tabs-container .tab", /Report: transpose\.cu/);
  const report = /Cost by line[^]*Roofline[^]*Warp scaling[^]*Occupancy[^]*Lanes of the accesses/;
  for (const [width, height] of [[1920, 1080], [1280, 800]]) {
    for (const [theme, name] of [["vs", "light"], ["vs-dark", "dark"], ["hc-black", "contrast"]]) {
      await bench.look(width, height, theme);
      const background = await editorBackground();
      const page = await until(`the page in the colours of ${theme}`, async () => {
        const page = await bench.inPage(report, inspect);
        return page.background === background && page;
      });
      for (const title of ["Where the cycles go", "Cost by line", "Roofline", "Warp scaling", "Occupancy", "Models side by side", "Other GPUs"]) {
        if (!page.titles.includes(title)) throw new Error(`the report lacks "${title}": ${page.titles}`);
      }
      // For each of the three kernels a roofline, a scaling curve and three of occupancy, and lanes where something is lost.
      if (page.plots < 16) throw new Error(`the report has only ${page.plots} plots`);
      if (page.outside + page.handlers > 0) throw new Error("the report has something from elsewhere, or a handler");
      if (!page.policies.every((policy) => policy.startsWith("default-src 'none'")) || page.policies.length === 0) {
        throw new Error(`the report's policy is ${page.policies}`);
      }
      if (page.clipped.length > 0) throw new Error(`text runs out of its picture: ${page.clipped}`);
      if (page.wide) throw new Error(`the report is wider than its ${width} px window`);
      await shot(`report-${name}-${width}`);
    }
  }
  await bench.look(1600, 1000, "vs-dark");
  await bench.closeTab(/Report: /);
});

await check("the lanes of the access at the cursor, which the page follows", async (shot) => {
  await bench.openFile("transpose.cu");
  await bench.cursorAt(source, conflict, "tile[");
  await bench.command("warplens: Show the Lanes of the Access at the Cursor");
  const banks = await bench.inPage(/1 of 32 banks accessed, up to 32 different words in one/, inspect);
  if (banks.plots !== 1 || banks.clipped.length > 0) throw new Error(`the lanes of one access: ${JSON.stringify(banks)}`);
  await shot();
  const naive = lineOf(/out\[x \* n \+ y\] = in/);
  await bench.cursorAt(source, naive, "out[");
  await bench.inPage(/32 lanes touch 32 segments of 32 B, 4 would hold/, inspect);
  await shot("lanes-of-a-column");
  await bench.closeTab(/Lanes at the Cursor/);
  await bench.openFile("transpose.cu");
});

await check("the work flow graph opens as a drawing in a tab of its own", async (shot) => {
  await bench.cursorAt(source, tiled, "transpose_tiled");
  await bench.command("warplens: Draw the Work Flow Graph of the Kernel at the Cursor");
  await bench.text(".tabs-container .tab", /Work flow graph of transpose_tiled/);
  const { shapes } = await bench.drawing(/transpose_tiled[^]*Work flow graph/);
  // Loads, stores and a barrier, with arcs between them.
  if (shapes < 8) throw new Error(`the drawing has only ${shapes} shapes`);
  await shot();
});

await check("a rule is explained", async (shot) => {
  await bench.focusEditor();
  await bench.command("warplens: Explain a Rule…");
  await bench.find("Those of the line", "smem/bank-conflict");
  await bench.answer("smem/bank-conflict");
  await bench.preview(/^\s*smem\/bank-conflict[^]*why it costs/i);
  await shot();
});

await check("the estimate opens as JSON", async () => {
  await bench.focusEditor();
  await bench.command("warplens: Show the Full Estimate as JSON");
  await bench.text(".editor-instance .view-lines", /"warplens\.estimate\/1"/);
});

await check("Toggle Inlay Hints takes the hints away and brings them back", async () => {
  await bench.cursorAt(source, conflict, "tile");
  await bench.afterLine(conflictText, /passes/);
  await bench.command("warplens: Toggle Inlay Hints");
  await bench.afterLine(conflictText, /^\s*$/);
  await bench.command("warplens: Toggle Inlay Hints");
  await bench.afterLine(conflictText, /passes/);
});

await check("Restart brings everything back, the chosen GPU included", async () => {
  await bench.focusEditor();
  await bench.command("warplens: Restart the Language Server");
  await bench.text(STATUS, /h100-sxm5/);
  await bench.text(LENS, /h100/i);
  await bench.text(PROBLEMS, /bank-conflict/);
});

await check("a trace for a bug report is recorded, and ended", async () => {
  await bench.focusEditor();
  await bench.command("warplens: Record a Trace for a Bug Report, or End It");
  await bench.text(".monaco-dialog-box", /holds the text of the documents/);
  await bench.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Record" }).first().click();
  await bench.text(LENS, /h100/i);
  await bench.cursorAt(source, conflict, "tile");
  await bench.afterLine(conflictText, /passes/);
  await bench.command("warplens: Record a Trace for a Bug Report, or End It");
  const said = await bench.text(".notification-toast", /The trace is .*\.jsonl/);
  const file = /The trace is (\S+\.jsonl)/.exec(said)[1];
  const recorded = fs.readFileSync(file, "utf8");
  for (const what of ["initialize", "textDocument/didOpen", "transpose_tiled", "shutdown"]) {
    if (!recorded.includes(what)) throw new Error(`the trace lacks ${what}`);
  }
  await bench.dismiss();
  await bench.text(LENS, /h100/i);
});

await check("a wrong setting is said, and costs nothing else", async () => {
  bench.setForFolder({ "warplens.model": "mwp-cpw", "warplens.inlayHints.share": 7 });
  await bench.text(".notification-toast", /warplens[^]*(model|inlayHints)/);
  await bench.text(LENS, /h100/i);
  bench.setForFolder({ "warplens.model": null, "warplens.inlayHints.share": null });
  await bench.command("Notifications: Clear All Notifications");
});

await check("the walkthrough has three steps and opens its sample", async (shot) => {
  await bench.command("Welcome: Open Walkthrough...");
  await bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "See what a kernel costs" }).first().click();
  for (const step of [/Open a sample kernel/, /Choose your GPU/, /See why, and what would help/]) {
    await bench.text(".gettingStartedContainer .step-title", step);
  }
  await shot();
  await bench.command("warplens: Open a Sample Kernel");
  await bench.text(LENS, /occupancy/);
  await bench.text(".editor-instance .view-lines", /32 sectors, ideal 4/);
  await shot("sample");
});

await check("pictures for the README and the walkthrough", async () => {
  // On the sample, without panel and side bar.
  await bench.command("View: Hide Panel");
  await bench.page.keyboard.press("Control+B");
  await bench.look(1240, 760, "vs-dark");
  await bench.focusEditor();
  const quiet = () => bench.page.mouse.move(300, 740);
  await quiet();
  await until("bars in the gutter", async () => (await bench.marks())["heat-5"] > 0);
  await picture("hints", ".editor-group-container");
  await bench.command("warplens: Select the Target GPU…");
  await bench.find("Now ", "sxm");
  await picture("gpus", ".quick-input-widget");
  await bench.dismiss();
  const sample = fs.readFileSync(path.join(given.repository, "editors", "vscode", "walkthrough", "sample.cu"), "utf8");
  await bench.cursorAt(sample, sample.split("\n").findIndex((line) => line.includes("= tile[")) + 1, "tile[");
  await bench.command("warplens: Show the Lanes of the Access at the Cursor");
  await bench.inPage(/up to 32 different words in one/, () => true);
  await quiet();
  await picture("lanes");
  await bench.closeTab(/Lanes at the Cursor/);
  await bench.focusEditor();
  await bench.command("warplens: Show the Report of This File");
  await bench.text(".tabs-container .tab", /Report: /);
  await bench.inPage(/Roofline[^]*Warp scaling/, () => {
    [...document.querySelectorAll("h3")].find((title) => title.textContent === "Cost by line").scrollIntoView();
    return true;
  });
  await quiet();
  await picture("report");
  await bench.command("View: Close All Editors");
  await bench.openFile("transpose.cu");
});

await check("the log says which server is used", async (shot) => {
  await bench.command("warplens: Open the Logs");
  await bench.text(".part.panel .view-lines", /using: bundled: .*server\/warplens \(warplens \d/);
  await shot();
});

await check("an OpenCL file has its language, colours and lenses", async (shot) => {
  await bench.openFile("transpose.cl");
  await bench.text(STATUS, /OpenCL C/);
  await bench.text(LENS, /h100/i);
  // The C grammar, which does most of the work, knows neither address spaces nor work-item functions.
  const colour = async (word) => {
    const spans = bench.page.locator(".editor-instance .view-line span span", { hasText: new RegExp(`^\\s*${word}\\s*$`) });
    return spans.first().evaluate((span) => getComputedStyle(span).color);
  };
  const seen = [await colour("__global"), await colour("get_global_id"), await colour("in")];
  if (new Set(seen).size < 3) throw new Error(`qualifier, function and name are not told apart: ${seen}`);
  await shot();
});

await check("a half-typed HIP file does not disturb the server", async () => {
  await bench.openFile("broken.hip");
  await bench.text(STATUS, /HIP C\+\+/);
  await bench.openFile("transpose.cu");
  await bench.text(LENS, /h100/i);
  await bench.noText(STATUS, /error/i);
});

await check("a GPU in the settings replaces the one that was picked, until it is taken out again", async () => {
  const file = path.join(workspace, ".vscode", "settings.json");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '{ "warplens.gpu": "tesla-k40c" }');
  await bench.text(STATUS, /tesla-k40c/);
  await bench.text(LENS, /k40c/i);
  fs.writeFileSync(file, "{}");
  await bench.text(STATUS, /a100-sxm4-40gb/);
  await bench.text(LENS, /a100/i);
});

await check("without a server it says so, and a path in the settings mends it", async (shot) => {
  const [installed] = fs.readdirSync(bench.extensions).filter((name) => name.startsWith("warplens."));
  const tools = path.join(folder, "tools");
  fs.renameSync(path.join(bench.extensions, installed, "server"), tools);
  await bench.command("warplens: Restart the Language Server");
  const toast = await bench.text(".notification-toast", /No warplens program was found/);
  if (!/Set the Path/.test(toast)) throw new Error(`the message offers no way out: ${toast}`);
  await bench.text(STATUS, /warplens/);
  await bench.noText(STATUS, /a100/);
  await shot();
  // The editor's home folder is the test's folder.
  bench.setOnMachine({ "warplens.server.path": "~/tools/warplens" });
  await bench.text(STATUS, /a100-sxm4-40gb/);
  await bench.command("warplens: Open the Logs");
  await bench.text(".part.panel .view-lines", /not used: bundled: .*no such file[^]*using: setting: .*\/tools\/warplens/);
});

// code-server's window is a browser and its extensions run beside the files: what is tried here is remote development.
await check("in an untrusted folder the figures are there, and nothing of the folder runs", async (shot) => {
  await bench.close();
  const strange = path.join(folder, "strange");
  fs.mkdirSync(path.join(strange, ".vscode"), { recursive: true });
  fs.copyFileSync(path.join(kernels, "vector_add.cu"), path.join(strange, "vector_add.cu"));
  fs.copyFileSync(path.join(kernels, "harness.cuh"), path.join(strange, "harness.cuh"));
  const ran = path.join(folder, "it-ran");
  const program = path.join(strange, "program.sh");
  fs.writeFileSync(program, `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
  const programs = { "warplens.server.path": program, "warplens.compiler": program, "warplens.detectGpu": true, "warplens.gpu": "t4" };
  fs.writeFileSync(path.join(strange, ".vscode", "settings.json"), JSON.stringify(programs));
  bench = await Workbench.open({
    ...editor,
    folder: path.join(folder, "second"),
    workspace: strange,
    settings: { ...settings, "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" },
    trusted: false,
  });
  await bench.openFile("vector_add.cu");
  await bench.text(STATUS, /Restricted Mode/);
  // A setting that runs nothing counts.
  await bench.text(LENS, /T4/);
  await bench.page.keyboard.press("Control+S");
  await shot();
  if (fs.existsSync(ran)) throw new Error("the folder's program ran");
});

await check("the walkthrough opens at the first run", async (shot) => {
  await bench.close();
  const own = path.join(folder, "first");
  fs.mkdirSync(own);
  fs.copyFileSync(path.join(kernels, "vector_add.cu"), path.join(own, "vector_add.cu"));
  bench = await Workbench.open({
    ...editor,
    folder: path.join(folder, "third"),
    workspace: own,
    settings: { ...settings, "workbench.startupEditor": "readme" },
  });
  await bench.openFile("vector_add.cu");
  await bench.text(".gettingStartedContainer", /See what a kernel costs/);
  await shot();
});

await finish();
