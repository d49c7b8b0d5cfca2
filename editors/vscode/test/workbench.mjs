// VS Code as a person sees it: starts code-server with an extension and drives it through Chromium.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { chromium } from "playwright-core";

const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How long anything in the editor may take to appear; a loaded machine is slow, a broken one never gets there. */
const PATIENCE_MS = 45_000;

export class Workbench {
  /**
   * Installs the extension into `folder`, serves `workspace` and opens it.
   * `settings` are the user's, as in settings.json. A folder that is not `trusted` opens in restricted mode.
   */
  static async open({ codeServer, chromiumPath, vsix, folder, workspace, settings, trusted = true }) {
    const data = path.join(folder, "data");
    const extensions = path.join(folder, "extensions");
    fs.mkdirSync(path.join(data, "User"), { recursive: true });
    fs.writeFileSync(path.join(data, "User", "settings.json"), JSON.stringify(settings, null, 2));
    const where = ["--user-data-dir", data, "--extensions-dir", extensions];
    const installed = spawnSync(codeServer, ["--install-extension", vsix, ...where], { encoding: "utf8", timeout: 120_000 });
    if (installed.status !== 0) throw new Error(`the extension was not installed:\n${installed.stdout}${installed.stderr}`);

    // A warplens that happens to be installed here is not the one under test.
    const searchPath = (process.env.PATH ?? "")
      .split(path.delimiter)
      .filter((directory) => !fs.existsSync(path.join(directory, "warplens")))
      .join(path.delimiter);
    const port = await freePort();
    const log = fs.openSync(path.join(folder, "code-server.log"), "w");
    const server = spawn(
      codeServer,
      [
        "--bind-addr",
        `127.0.0.1:${port}`,
        "--auth",
        "none",
        "--disable-telemetry",
        "--disable-update-check",
        ...(trusted ? ["--disable-workspace-trust"] : []),
        "--disable-getting-started-override",
        ...where,
      ],
      // A group of its own, so that its children end with it.
      { stdio: ["ignore", log, log], detached: true, env: { ...process.env, HOME: folder, PATH: searchPath } },
    );
    const bench = new Workbench();
    bench.extensions = extensions;
    bench.settings = path.join(workspace, ".vscode", "settings.json");
    bench.machineSettings = path.join(data, "Machine", "settings.json");
    bench.server = server;
    await until("code-server answers", async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
    bench.browser = await chromium.launch({ executablePath: chromiumPath, args: CHROMIUM_FLAGS });
    bench.page = await bench.browser.newPage({ viewport: { width: 1600, height: 1000 } });
    bench.page.setDefaultTimeout(PATIENCE_MS);
    await bench.page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`, { timeout: 120_000 });
    await bench.page.waitForSelector(".monaco-workbench .part.statusbar", { timeout: 120_000 });
    return bench;
  }

  async close() {
    await this.browser?.close().catch(() => {});
    if (this.server?.exitCode === null) {
      try {
        process.kill(-this.server.pid, "SIGTERM");
      } catch {
        // It ended by itself.
      }
    }
  }

  /** The whole window, or the part of it that `selector` finds first. */
  async screenshot(file, selector) {
    if (selector === undefined) await this.page.screenshot({ path: file });
    else await this.page.locator(selector).first().screenshot({ path: file });
  }

  /** Changes some settings of the folder; null takes one out. */
  setForFolder(settings) {
    const all = fs.existsSync(this.settings) ? JSON.parse(fs.readFileSync(this.settings, "utf8")) : {};
    const kept = Object.entries({ ...all, ...settings }).filter(([, value]) => value !== null);
    fs.mkdirSync(path.dirname(this.settings), { recursive: true });
    fs.writeFileSync(this.settings, JSON.stringify(Object.fromEntries(kept), null, 2));
  }

  /** Waits until the window has a size and a theme: `vs` for light, `vs-dark` for dark and `hc-black` for high contrast. */
  async look(width, height, theme) {
    const names = { vs: "Default Light Modern", "vs-dark": "Default Dark Modern", "hc-black": "Default High Contrast" };
    this.setForFolder({ "workbench.colorTheme": names[theme] });
    await this.page.setViewportSize({ width, height });
    await this.page.locator(`.monaco-workbench.${theme}`).waitFor();
  }

  /** How many lines in sight have a mark in the gutter, by the file of its image. */
  marks() {
    return this.page.evaluate(() => {
      const found = {};
      for (const mark of document.querySelectorAll(".editor-instance .margin [class*='TextEditorDecorationType'], .editor-instance .glyph-margin-widgets > *")) {
        const name = /heat-\d/.exec(getComputedStyle(mark).backgroundImage)?.[0];
        if (name) found[name] = (found[name] ?? 0) + 1;
      }
      return found;
    });
  }

  /** Waits for a page of the extension whose text matches, and answers what `look` finds in it. */
  async inPage(pattern, look) {
    return until(`a page that says ${pattern}`, async () => {
      for (const frame of this.page.frames()) {
        const text = await frame.evaluate(() => (document.querySelector("iframe") ? "" : (document.body?.textContent ?? ""))).catch(() => "");
        if (frame !== this.page.mainFrame() && pattern.test(text)) return frame.evaluate(look);
      }
      return undefined;
    });
  }

  /** Writes the settings of the machine that VS Code's server runs on: paths of programs belong there. */
  setOnMachine(settings) {
    fs.mkdirSync(path.dirname(this.machineSettings), { recursive: true });
    fs.writeFileSync(this.machineSettings, JSON.stringify(settings, null, 2));
  }

  /** Opens a file of the workspace by its name. */
  async openFile(name) {
    const editor = this.page.locator(`.editor-instance .monaco-editor[data-uri$="/${name}"]`);
    // Early in the start the workbench drops keys; try until the editor is there.
    await until(`${name} is open`, async () => {
      await this.dismiss();
      await this.page.keyboard.press("Control+P");
      await this.page.locator(".quick-input-widget input").fill(name, { timeout: 5_000 });
      await this.page
        .locator(".quick-input-list .monaco-list-row", { hasText: name })
        .first()
        .click({ timeout: 5_000 });
      await editor.first().waitFor({ timeout: 5_000 });
      return true;
    });
    await this.focusEditor();
  }

  async focusEditor() {
    await this.dismiss();
    await this.page.keyboard.press("Control+1");
  }

  /** Closes menus, hovers and boxes. */
  async dismiss() {
    await this.page.keyboard.press("Escape");
    await this.page.keyboard.press("Escape");
  }

  /** Chooses a command from the palette by its full title. */
  async command(title) {
    const input = this.page.locator(".quick-input-widget input");
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    for (let last = 3; ; last--) {
      await this.page.keyboard.press("F1");
      try {
        await input.fill(`>${title}`, { timeout: 10_000 });
        await this.settled();
        return await row.click({ timeout: 10_000 });
      } catch (error) {
        if (last === 0) throw error;
        // A page that opened late has the focus: commands of the editor are not offered there.
        await this.focusEditor();
      }
    }
  }

  /** Waits until a list that narrows while typing is stable: a click would hit the row that comes next. */
  async settled() {
    const rows = () => this.page.locator(".quick-input-list .monaco-list-row").allTextContents();
    let before = await rows();
    await until("a stable list", async () => {
      await this.page.waitForTimeout(100);
      const now = await rows();
      const still = now.length > 0 && now.join("\n") === before.join("\n");
      before = now;
      return still;
    });
  }

  /** Closes the tab whose title matches, and waits until it is gone. */
  async closeTab(title) {
    const tab = this.page.locator(".tabs-container .tab", { hasText: title });
    await until(`no tab ${title}`, async () => {
      if ((await tab.count()) === 0) return true;
      await tab.first().hover({ timeout: 5_000 });
      await tab.first().locator(".codicon-close").click({ timeout: 5_000 });
      await tab.waitFor({ state: "hidden", timeout: 5_000 });
      return true;
    });
  }

  /** Waits for a box or list that the extension shows, and answers its text. */
  async box(pattern) {
    return this.text(".quick-input-widget:visible", pattern);
  }

  /** Types into a list that the extension shows, long ones of which only the beginning is drawn, and waits for an entry. */
  async find(placeholder, typed) {
    await this.page.locator(`.quick-input-widget input[placeholder*="${placeholder}"]`).fill(typed);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: typed }).first().waitFor();
  }

  /** Types an answer into the box and confirms it. */
  async answer(typed) {
    await this.page.locator(".quick-input-widget input").fill(typed);
    await this.page.keyboard.press("Enter");
  }

  /** Puts the cursor before the first occurrence of `part` in the line numbered `line` (from 1) of `source`. */
  async cursorAt(source, line, part) {
    const column = source.split("\n")[line - 1].indexOf(part) + 1;
    await this.focusEditor();
    await this.page.keyboard.press("Control+G");
    await this.page.locator(".quick-input-widget input").fill(`:${line}:${column}`);
    await this.page.keyboard.press("Enter");
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** The lines in sight as a person reads them, hints included. */
  async lines() {
    return (await this.page.locator(".editor-instance .view-lines .view-line").allTextContents()).map(plain);
  }

  /** Waits for a line in sight that begins (spaces aside) with `start` and answers what comes after it. */
  async afterLine(start, pattern) {
    return until(`a line "${start}" followed by ${pattern}`, async () => {
      for (const line of await this.lines()) {
        const trimmed = line.trimStart();
        if (!trimmed.startsWith(start)) continue;
        const rest = trimmed.slice(start.length);
        if (pattern.test(rest)) return rest;
      }
      return undefined;
    });
  }

  /** Waits until an element that matches `selector` has text that matches, and answers that text. */
  async text(selector, pattern) {
    let seen = [];
    try {
      return await until(`${selector} says ${pattern}`, async () => {
        seen = (await this.page.locator(selector).allTextContents()).map(plain);
        return seen.find((text) => pattern.test(text));
      });
    } catch (error) {
      throw new Error(`${error.message}; it says ${JSON.stringify(seen).slice(0, 600)}`);
    }
  }

  /** Waits until no element that matches `selector` has text that matches. */
  async noText(selector, pattern) {
    await until(`${selector} says no more ${pattern}`, async () => {
      const texts = (await this.page.locator(selector).allTextContents()).map(plain);
      return !texts.some((text) => pattern.test(text));
    });
  }

  /** Moves the mouse onto `part` of the first line in sight that contains `line`, and waits for a hover that matches. */
  async hover(line, part, pattern) {
    return until(`a hover on "${part}" that says ${pattern}`, async () => {
      const at = await this.place(line, part);
      if (at === undefined) return undefined;
      await this.page.mouse.move(at.x + 40, at.y - 200);
      await this.page.mouse.move(at.x, at.y, { steps: 3 });
      return this.page
        .locator(".monaco-hover:visible")
        .filter({ hasText: pattern })
        .first()
        .textContent({ timeout: 4_000 })
        .then(plain);
    });
  }

  /** The middle of `part` on the screen. */
  place(line, part) {
    return this.page.evaluate(
      ([line, part]) => {
        const normal = (text) => text.replaceAll("\u00a0", " ");
        for (const element of document.querySelectorAll(".editor-instance .view-lines .view-line")) {
          if (!normal(element.textContent).includes(line)) continue;
          const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
            const start = normal(node.data).indexOf(part);
            if (start < 0) continue;
            const range = document.createRange();
            range.setStart(node, start);
            range.setEnd(node, start + part.length);
            const box = range.getBoundingClientRect();
            return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
          }
        }
        return undefined;
      },
      [line, part],
    );
  }

  /** The lens above the first line in sight that contains `line`; none while it is not drawn. */
  async lensAbove(line, part) {
    const at = await this.place(line, part);
    if (at === undefined) return undefined;
    const lenses = await this.page
      .locator(".editor-instance .codelens-decoration")
      .evaluateAll((all) => all.map((lens) => ({ text: lens.textContent, bottom: lens.getBoundingClientRect().bottom })));
    // Half a line further down is the middle of the text.
    const lens = lenses.find(({ bottom }) => at.y - bottom > -4 && at.y - bottom < 24);
    return lens === undefined ? undefined : plain(lens.text);
  }

  /** Chooses the light bulb's action whose title begins with `title`. */
  async action(title, shot) {
    const rows = this.page.locator(".action-widget .monaco-list-row.action");
    await until(`an action that begins with ${title}`, async () => {
      // In an open list the same key would choose the action in focus.
      await this.page.keyboard.press("Escape");
      await rows.first().waitFor({ state: "hidden" });
      await this.page.keyboard.press("Control+.");
      await rows.filter({ hasText: new RegExp(`^\\s*${title}`) }).first().waitFor({ timeout: 4_000 });
      return true;
    });
    await shot();
    const count = await rows.count();
    for (let i = 0; i < count; i += 1) {
      const focused = plain((await this.page.locator(".action-widget .monaco-list-row.focused").textContent()) ?? "");
      if (focused.trimStart().startsWith(title)) {
        await this.page.keyboard.press("Enter");
        return;
      }
      await this.page.keyboard.press("ArrowDown");
    }
    throw new Error(`the action "${title}" cannot be reached with the keyboard`);
  }

  /** Waits for text in the page of a Markdown preview, which lives in a frame of a frame. */
  async preview(pattern) {
    return until(`a preview that says ${pattern}`, async () => {
      for (const frame of this.page.frames()) {
        const text = await frame.evaluate(() => document.querySelector(".markdown-body")?.textContent ?? "").catch(() => "");
        if (pattern.test(text)) return text;
      }
      return undefined;
    });
  }

  /** Waits for a drawing in a page of the extension, and answers its texts and how many shapes are in sight. */
  async drawing(pattern) {
    return until(`a drawing that says ${pattern}`, async () => {
      for (const frame of this.page.frames()) {
        const seen = await frame
          .evaluate(() => {
            const svg = document.querySelector("svg");
            if (!svg) return undefined;
            const shown = [...svg.querySelectorAll("rect, circle, ellipse, path, line, polygon")].filter((shape) => {
              const { width, height } = shape.getBoundingClientRect();
              return width + height > 0;
            });
            return { text: svg.textContent, shapes: shown.length };
          })
          .catch(() => undefined);
        if (seen && pattern.test(seen.text)) return seen;
      }
      return undefined;
    });
  }
}

/** Tries until the answer is neither undefined nor false nor an error. */
export async function until(what, attempt, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  let last;
  do {
    try {
      const answer = await attempt();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (Date.now() < end);
  throw new Error(`waited ${patience / 1000} s in vain: ${what}${last ? ` (${String(last.message).split("\n")[0]})` : ""}`);
}

/** Monaco draws spaces as no-break spaces. */
function plain(text) {
  return text.replaceAll("\u00a0", " ");
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
