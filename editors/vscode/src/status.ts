// The status bar item: the target GPU, the kernel at the cursor and how the server is.

import * as vscode from "vscode";
import { kernelFileInSight } from "./documents";
import type { Gpu } from "./gpu";
import { kernelAt, statusOf, type KernelEntry } from "./kernels";
import { kernels } from "./kernelTree";
import { describe } from "./locate";
import type { Phase, Session } from "./session";

/** How long after a change the figures are asked for anew. */
const PAUSE_MS = 500;

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("warplens.status", vscode.StatusBarAlignment.Right, 100);
  private readonly disposables: vscode.Disposable[];
  private known: KernelEntry[] = [];
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;

  constructor(
    private readonly session: Session,
    private readonly gpu: Gpu,
  ) {
    this.item.name = "warplens";
    this.item.command = "warplens.menu";
    const update = () => this.update();
    const soon = () => this.soon();
    this.disposables = [
      this.item,
      session.onDidChange(soon),
      session.onDidRefresh(soon),
      gpu.onDidChange(soon),
      vscode.workspace.onDidChangeTextDocument(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.window.onDidChangeTextEditorSelection(update),
      session.onDidChange(update),
      gpu.onDidChange(update),
      vscode.window.onDidChangeVisibleTextEditors(update),
      vscode.languages.onDidChangeDiagnostics(update),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("warplens")) update();
      }),
    ];
    this.update();
    this.soon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  /** Asks for the figures of the kernels when nothing was typed for a while; the answer to the last question counts. */
  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), PAUSE_MS);
  }

  private async ask(): Promise<void> {
    const number = ++this.asked;
    let known: KernelEntry[] = [];
    if (this.session.server !== undefined && kernelFileInSight()) {
      try {
        known = await kernels(this.session);
      } catch {
        // A server that ends answers nothing: its end is shown.
      }
    }
    if (number !== this.asked) return;
    this.known = known;
    this.update();
  }

  /** The figures of the kernel at the cursor. */
  private kernelHere(): string | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) return undefined;
    const here = kernelAt(this.known, editor.document.uri.toString(), editor.selection.active.line);
    return here === undefined ? undefined : statusOf(here);
  }

  private update(): void {
    const phase = this.session.phase;
    const gpu = this.gpu.id;
    const lost = lostKernels();
    const here = this.kernelHere();
    switch (phase.kind) {
      case "starting":
        this.item.text = "$(loading~spin) warplens";
        break;
      case "running":
        this.item.text = `$(${this.session.recording === undefined ? "circuit-board" : "record"}) ${gpu ?? "warplens"}${this.gpu.isDefault ? " (default)" : ""}`;
        if (here !== undefined) this.item.text += ` · ${here}`;
        if (lost > 0) this.item.text += ` $(warning) ${lost} ${lost === 1 ? "kernel" : "kernels"} lost`;
        break;
      case "failed":
        this.item.text = "$(error) warplens";
        break;
    }
    this.item.backgroundColor =
      phase.kind === "failed" ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    this.item.tooltip = tooltip(phase, gpu, this.gpu.isDefault, this.gpu.missingHeaders, lost, this.session.recording);
    // An error stays in sight whatever is edited.
    if (phase.kind === "failed" || kernelFileInSight()) this.item.show();
    else this.item.hide();
  }
}

/** Kernels of the files in sight whose analysis failed inside warplens. */
function lostKernels(): number {
  const files = new Set(vscode.window.visibleTextEditors.map((editor) => editor.document.uri.toString()));
  const found = [...files].flatMap((uri) => vscode.languages.getDiagnostics(vscode.Uri.parse(uri)));
  return found.filter((one) => one.source === "warplens" && rule(one) === "internal/lost-kernel").length;
}

function rule(found: vscode.Diagnostic): string | number | undefined {
  return typeof found.code === "object" ? found.code.value : found.code;
}

function tooltip(
  phase: Phase,
  gpu: string | undefined,
  isDefault: boolean,
  missing: readonly string[],
  lost: number,
  recording: string | undefined,
): vscode.MarkdownString {
  const text = new vscode.MarkdownString("", true);
  // Only our own commands are links here; paths and answers of programs go in as plain text.
  text.isTrusted = { enabledCommands: ["warplens.selectGpu", "warplens.restart", "warplens.openLogs"] };
  const line = (plain: string) => text.appendText(plain).appendMarkdown("\n\n");
  switch (phase.kind) {
    case "starting":
      line("The warplens server is starting.");
      break;
    case "running":
      if (gpu !== undefined) line(`Costs are predicted for ${gpu}${isDefault ? ", the default: nothing names a GPU" : ""}.`);
      if (lost > 0) line("The analysis of a kernel failed inside warplens. Its diagnostic says how to report it.");
      if (missing.length > 0) {
        const more = missing.length > 10 ? ` and ${missing.length - 10} more` : "";
        line(`Headers not found: ${missing.slice(0, 10).join(", ")}${more}. Name their folders in warplens.includePaths.`);
      }
      if (recording !== undefined) line(`This session is recorded in ${recording}.`);
      line(`${phase.server.version}, ${phase.server.origin}: ${phase.server.path}`);
      break;
    case "failed":
      line(phase.message);
      break;
  }
  const failures = phase.kind === "starting" ? [] : phase.failures;
  for (const failure of failures) line(`Not used: ${describe(failure)}`);
  text.appendMarkdown(
    "[Select GPU](command:warplens.selectGpu) · [Restart](command:warplens.restart) · [Logs](command:warplens.openLogs)",
  );
  return text;
}
