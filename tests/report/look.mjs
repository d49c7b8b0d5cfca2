// The page of `warplens report` as a reader sees it: node look.mjs WARPLENS CHROMIUM
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { argv, exit } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [warplens, executablePath] = argv.slice(2);
const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const artifacts = join(repository, "tests/artifacts/report");
mkdirSync(artifacts, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "warplens-report-"));
const file = join(folder, "report.html");
execFileSync(resolve(warplens), ["report", join(repository, "tests/kernels/transpose.cu"), "-o", file]);

let passed = 0;
let failed = 0;
async function check(what, test) {
  try {
    await test();
    passed += 1;
    console.log(`ok: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${what}\n    ${String(error.message).replaceAll("\n", "\n    ")}`);
  }
}

/** What can be seen of the page, asked in the browser. */
function look() {
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const body = getComputedStyle(document.body);
  const worst = (elements, colour) =>
    Math.min(...[...elements].map((element) => contrast(getComputedStyle(element)[colour], body.backgroundColor)));
  const plots = [...document.querySelectorAll("svg.plot")];
  return {
    title: document.title,
    kernels: [...document.querySelectorAll("h2")].map((heading) => heading.textContent),
    back: luminance(body.backgroundColor),
    text: contrast(body.color, body.backgroundColor),
    quiet: worst(document.querySelectorAll("p.quiet, dt, th, figcaption"), "color"),
    labels: worst(document.querySelectorAll("svg.plot text:not(.cell)"), "fill"),
    plots: plots.map((plot) => plot.getAttribute("aria-label") ?? ""),
    // Within a part that is folded away a plot has no size.
    empty: plots.filter((plot) => plot.checkVisibility() && (plot.clientWidth < 100 || plot.clientHeight < 40)).length,
    // What is drawn outside of its picture is cut off.
    cut: plots.filter((plot) => plot.checkVisibility()).flatMap((plot) => {
      const frame = plot.getBoundingClientRect();
      return [...plot.querySelectorAll("text")]
        .filter((text) => {
          const box = text.getBoundingClientRect();
          return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
        })
        .map((text) => `${plot.getAttribute("aria-label")}: ${text.textContent}`);
    }),
    // What a kernel's part begins and ends with; its tables are closed when the page opens.
    order: [...document.querySelectorAll("section[id]")].map((part) =>
      [...part.children].map((child) => (child.matches("details") ? "folded" : child.querySelector(".lead") ? "lead" : child.localName)),
    ),
    scripts: document.scripts.length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const seen = {};
try {
  for (const colorScheme of ["light", "dark"]) {
    const asked = [];
    const said = [];
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
    const opened = await page.evaluate(() => [...document.querySelectorAll("details")].filter((part) => part.open).length);
    await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
    const found = await page.evaluate(look);
    seen[colorScheme] = found;
    await page.screenshot({ path: join(artifacts, `${colorScheme}.png`), fullPage: true });

    await check(`${colorScheme}: it asks for nothing but itself, and complains of nothing`, () => {
      assert.deepEqual(asked, [pathToFileURL(file).href]);
      assert.deepEqual(said, []);
      assert.equal(found.scripts, 0);
    });
    await check(`${colorScheme}: every kernel has its part`, () => {
      for (const kernel of ["transpose_naive", "transpose_tiled", "transpose_padded"]) {
        assert.ok(found.kernels.some((heading) => heading.includes(kernel)), `${kernel} in ${found.kernels}`);
      }
    });
    await check(`${colorScheme}: each kernel has its pictures, drawn, named and nowhere cut off`, () => {
      const count = (name) => found.plots.filter((label) => name.test(label)).length;
      // Roofline, scaling, occupancy against block, registers and shared memory.
      for (const name of [/ instructions per byte/, /% of the fastest/, /^threads per/, /^registers per/, /^shared memory per/]) {
        assert.equal(count(name), 3, `${name} in ${found.plots.join("\n")}`);
      }
      // The lanes of accesses that move more than they have to: the padded kernel has none.
      assert.equal(count(/ lanes touch /), 1);
      assert.equal(count(/ banks accessed/), 1);
      assert.equal(found.plots.length, 3 * 5 + 2);
      assert.deepEqual({ empty: found.empty, cut: found.cut }, { empty: 0, cut: [] });
    });
    await check(`${colorScheme}: a kernel's part begins with what it costs and ends with folded tables`, () => {
      assert.equal(opened, 0, "parts that are open when the page is");
      for (const parts of found.order) {
        assert.deepEqual(parts.slice(0, 2), ["h2", "lead"]);
        assert.equal(parts.at(-1), "folded", parts.join(" "));
      }
    });
    await check(`${colorScheme}: it can be read`, () => {
      // What the accessibility guidelines ask of text (WCAG 2.1, AA).
      for (const part of ["text", "quiet", "labels"]) assert.ok(found[part] >= 4.5, `${part}: ${found[part].toFixed(2)}`);
    });
    await check(`${colorScheme}: nothing is wider than the window, on a telephone neither`, async () => {
      assert.equal(found.overflow, 0);
      await page.setViewportSize({ width: 390, height: 800 });
      const narrow = await page.evaluate(look);
      assert.equal(narrow.overflow, 0, "390 pixels wide");
      await page.screenshot({ path: join(artifacts, `${colorScheme}-narrow.png`) });
    });
    await context.close();
  }
  await check("light is light, and dark is dark", () => {
    assert.ok(seen.light.back > 0.8 && seen.dark.back < 0.1, `${seen.light.back} and ${seen.dark.back}`);
  });
  await check("the page is small", () => {
    const size = statSync(file).size;
    // Under 1 MiB for ten kernels.
    assert.ok(size < (3 / 10) * 1024 * 1024, `${size} bytes for three kernels`);
  });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
exit(failed === 0 ? 0 : 1);
