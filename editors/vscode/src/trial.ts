// What `warplens.tryLaunch` answers, as the launch panel shows it. Knows nothing of VS Code, so that it can be tested by itself.

import { showSize, type Size } from "./launch";

export interface Choice {
  block: Size;
  grid: Size;
  time_ms: number | null;
  time: string;
  /** From 0 to 1. */
  occupancy: number;
  /** The launch that the rest is about. */
  now: boolean;
}

export interface Trial<Edit = unknown> {
  kernel: string;
  gpu: { id: string; name: string };
  launch: {
    grid: Size | null;
    grid_formula: string | null;
    block: Size;
    dynamic_shared_bytes: number;
    grid_source: string;
    block_source: string;
  };
  arguments: { name: string; value: number | null; given: boolean }[];
  time: string | null;
  bottleneck: string | null;
  occupancy: number;
  limiter: string;
  waves: number | null;
  why_impossible: string | null;
  choices: Choice[];
  stand_ins: string | null;
  fixed: string | null;
  directive: string;
  edit: Edit | null;
}

/** The panel's fields at first: what holds, where something gives it. */
export interface Fields {
  block: string;
  grid: string;
  dynamicShared: string;
  args: string;
}

export function fields(trial: Trial): Fields {
  const { launch } = trial;
  return {
    block: showSize(launch.block),
    grid: launch.grid === null ? "" : showSize(launch.grid),
    dynamicShared: launch.dynamic_shared_bytes === 0 ? "" : String(launch.dynamic_shared_bytes),
    args: trial.arguments
      .filter(({ given, value }) => given && value !== null)
      .map(({ name, value }) => `${name}=${value}`)
      .join(" "),
  };
}

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => escapes[letter] ?? letter);
}

/** Text with pieces of source between backticks. */
function prose(text: string): string {
  return escape(text).replace(/`([^`]*)`/g, "<code>$1</code>");
}

const percent = (share: number) => `${Math.round(share * 100)} %`;

/** The figures of a launch, its curve over block sizes and what would be written above the kernel, as HTML. */
export function figures(trial: Trial): string {
  if (trial.why_impossible !== null) {
    return `<p class="time">Cannot launch</p><p>${prose(trial.why_impossible)}</p>`;
  }
  const waves = trial.waves === null ? "" : ` · ${Number(trial.waves.toFixed(2))} waves`;
  const bound = trial.bottleneck === null ? "" : ` · ${escape(trial.bottleneck)}`;
  const occupancy = `occupancy ${percent(trial.occupancy)} (${escape(trial.limiter)})`;
  return [
    `<p class="time">${prose(trial.time ?? "no estimate")}</p>`,
    `<p>${escape(trial.gpu.name)}${bound} · ${occupancy}${waves}</p>`,
    trial.fixed === null ? curve(trial) : `<p>${prose(trial.fixed)}</p>`,
    `<p class="directive"><code>${escape(trial.directive)}</code></p>`,
  ].join("\n");
}

/** A bar for each block: its length is the time, the shortest is the fastest. A click takes that block. */
function curve(trial: Trial): string {
  const longest = Math.max(...trial.choices.map(({ time_ms }) => time_ms ?? 0));
  const rows = trial.choices.map((choice) => {
    const width = choice.time_ms === null || longest === 0 ? 0 : Math.max(1, Math.round((100 * choice.time_ms) / longest));
    const [block, grid] = [showSize(choice.block), showSize(choice.grid)];
    return (
      `<tr${choice.now ? ' class="now"' : ""}><td><button data-block="${block}" data-grid="${grid}">${block}</button></td>` +
      `<td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg></td>` +
      `<td>${escape(choice.time)}</td><td>${percent(choice.occupancy)}</td></tr>`
    );
  });
  const rests = trial.stand_ins === null ? "" : `<p>With ${prose(trial.stand_ins)}, which nothing gives.</p>`;
  return (
    '<table><thead><tr><th>block</th><th class="bar">time</th><th></th><th>occupancy</th></tr></thead>' +
    `<tbody>${rows.join("")}</tbody></table>${rests}`
  );
}

/** The page: fields, the figures, what can be done. Its only script passes on what is typed and clicked. */
export function page(trial: Trial, nonce: string): string {
  const at = fields(trial);
  const field = (name: keyof Fields, label: string, example: string) =>
    `<label>${label}<input name="${name}" value="${escape(at[name])}" placeholder="${example}" spellcheck="false"></label>`;
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'">
<style>${STYLE}</style></head><body>
<h1>Launch of <code>${escape(trial.kernel)}</code></h1>
<form>
${field("block", "Threads of a block", "32,8")}
${field("grid", "Blocks of the grid", "64,64")}
${field("args", "Integer arguments", "n=1024")}
${field("dynamicShared", "Dynamic shared memory, bytes", "0")}
</form>
<p id="wrong" role="alert"></p>
<div id="figures">${figures(trial)}</div>
<p class="actions">
<button data-do="use">Use for this session</button>
<button data-do="write">Write as directive</button>
<button data-do="keep">Keep for this workspace</button>
<button data-do="back">Take back</button>
</p>
<script nonce="${nonce}">${SCRIPT}</script>
</body></html>`;
}

const STYLE = `
body { color: var(--vscode-foreground); background: var(--vscode-editor-background); font: var(--vscode-font-size)/1.5 var(--vscode-font-family); max-width: 44em; }
h1 { font-size: 1.2em; font-weight: 600; }
form { display: grid; grid-template-columns: repeat(auto-fit, minmax(12em, 1fr)); gap: .6em; }
label { display: grid; gap: .2em; color: var(--vscode-descriptionForeground); }
input { color: var(--vscode-input-foreground); background: var(--vscode-input-background); border: 1px solid var(--vscode-input-border, var(--vscode-contrastBorder, transparent)); padding: .3em; font-family: var(--vscode-editor-font-family); }
#wrong:empty { display: none; } #wrong { color: var(--vscode-errorForeground); }
.time { font-size: 1.6em; margin: .4em 0 0; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: normal; color: var(--vscode-descriptionForeground); }
td, th { padding: .1em .6em .1em 0; white-space: nowrap; } .bar { width: 60%; }
.bar svg { width: 100%; height: .8em; display: block; } .bar rect { fill: var(--vscode-charts-blue, currentColor); }
.now { font-weight: 600; } .now rect { fill: var(--vscode-charts-green, currentColor); }
button { color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); border: 1px solid var(--vscode-contrastBorder, transparent); padding: .3em .8em; cursor: pointer; }
td button { font: inherit; font-family: var(--vscode-editor-font-family); padding: 0 .4em; }
`;

const SCRIPT = `
const api = acquireVsCodeApi();
const form = document.querySelector("form");
const values = () => Object.fromEntries(new FormData(form));
let timer;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => api.postMessage({ what: "try", values: values() }), 150); });
document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button?.dataset.block !== undefined) {
    form.elements.block.value = button.dataset.block;
    form.elements.grid.value = button.dataset.grid;
    api.postMessage({ what: "try", values: values() });
  } else if (button?.dataset.do !== undefined) api.postMessage({ what: button.dataset.do, values: values() });
});
addEventListener("message", ({ data }) => {
  document.getElementById("wrong").textContent = data.wrong ?? "";
  if (data.figures !== undefined) document.getElementById("figures").innerHTML = data.figures;
  for (const [name, value] of Object.entries(data.fields ?? {})) form.elements[name].value = value;
});
`;
