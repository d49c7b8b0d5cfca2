// The heat map: a bar in the gutter of each line that costs something, the longer the more of its kernel's time.

import * as vscode from "vscode";
import { kernelEditors } from "./documents";
import type { Session } from "./session";

/** The degrees of heat, from the mildest; a line's heat is its share over that of its kernel's costliest line. */
const DEGREES = 5;
/** How long after an edit the map is requested again; meanwhile it moves with the text. */
const PAUSE_MS = 300;

interface Heat {
  version: number | null;
  lines: { line: number; kernel: string; share: number; heat: number }[];
}

export class HeatMap implements vscode.Disposable {
  private readonly degrees: vscode.TextEditorDecorationType[];
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly session: Session,
    extension: vscode.Uri,
  ) {
    this.degrees = Array.from({ length: DEGREES }, (_, degree) =>
      vscode.window.createTextEditorDecorationType({
        gutterIconPath: vscode.Uri.joinPath(extension, "images", `heat-${degree + 1}.svg`),
        gutterIconSize: "contain",
        overviewRulerLane: vscode.OverviewRulerLane.Left,
        // The mildest would only clutter the ruler.
        ...(degree >= 2 && { overviewRulerColor: `rgba(224, 90, 30, ${(degree + 1) / DEGREES})` }),
      }),
    );
    const soon = () => this.soon();
    this.disposables = [
      ...this.degrees,
      session.onDidRefresh(soon),
      session.onDidChange(soon),
      vscode.window.onDidChangeVisibleTextEditors(soon),
      // Not every document: the log is one too, and grows with each question.
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (kernelEditors().some((editor) => editor.document === document)) this.soon();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("warplens")) this.soon();
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const editor of kernelEditors()) void this.paint(editor);
    }, PAUSE_MS);
  }

  private async paint(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const wanted = vscode.workspace.getConfiguration("warplens", document).get<boolean>("heatMap.enable", true);
    if (!wanted || this.session.server === undefined) return this.put(editor, []);
    try {
      const heat = await this.session.execute<Heat>("warplens.heat", { uri: document.uri.toString() });
      // An answer about an older text comes with the next one that follows it.
      if (heat.version === null || heat.version === document.version) this.put(editor, heat.lines);
    } catch {
      // A server that does not know the command, or a file without kernels.
      this.put(editor, []);
    }
  }

  private put(editor: vscode.TextEditor, lines: Heat["lines"]): void {
    this.degrees.forEach((type, degree) => {
      const here = lines.filter(({ heat }) => Math.min(DEGREES - 1, Math.ceil(heat * DEGREES) - 1) === degree);
      editor.setDecorations(
        type,
        here.map(({ line }) => new vscode.Range(line, 0, line, 0)),
      );
    });
  }
}
