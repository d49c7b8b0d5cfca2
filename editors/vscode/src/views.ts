// Pages of the server in panels of their own: the report, the lanes of an access, the work flow graph. A page carries all it
// needs; nothing is loaded and no script runs.

import * as vscode from "vscode";
import type { Session } from "./session";

/** How long after a change a page is made anew. */
const PAUSE_MS = 400;

/** Makes a page; undefined leaves the one that is shown. */
type Make = () => Promise<string | undefined>;

interface View {
  panel: vscode.WebviewPanel;
  make: Make;
}

export class Views implements vscode.Disposable {
  private readonly views = new Map<string, View>();
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(session: Session) {
    this.disposables = [
      session.onDidRefresh(() => this.soon()),
      vscode.workspace.onDidSaveTextDocument(() => this.soon()),
    ];
  }

  /** Shows a page beside the editor; one of the same key is brought to the front and made anew. */
  async show(key: string, title: string, make: Make): Promise<void> {
    const html = await make();
    let view = this.views.get(key);
    if (view === undefined) {
      const panel = vscode.window.createWebviewPanel(
        "warplens.page",
        title,
        { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
        { enableScripts: false, enableCommandUris: false, localResourceRoots: [], enableFindWidget: true },
      );
      view = { panel, make };
      this.views.set(key, view);
      panel.onDidDispose(() => this.views.delete(key));
      // What changed while it was hidden is shown when it comes back.
      panel.onDidChangeViewState(({ webviewPanel }) => {
        if (webviewPanel.visible) this.soon();
      });
    } else {
      view.make = make;
      view.panel.reveal(undefined, true);
    }
    view.panel.title = title;
    if (html !== undefined) put(view, html);
  }

  /** Whether a page of that key is open. */
  has(key: string): boolean {
    return this.views.has(key);
  }

  /** Makes one page anew, if it is in sight. */
  async refresh(key: string): Promise<void> {
    const view = this.views.get(key);
    if (view?.panel.visible !== true) return;
    try {
      const html = await view.make();
      if (html !== undefined && this.views.get(key) === view) put(view, html);
    } catch {
      // The page stays as it was; what is wrong with the file is said in the file.
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const { panel } of [...this.views.values()]) panel.dispose();
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const key of this.views.keys()) void this.refresh(key);
    }, PAUSE_MS);
  }
}

/** A page that is the same is left alone: it would lose where it was scrolled to. */
function put(view: View, html: string): void {
  const page = confined(html);
  if (view.panel.webview.html !== page) view.panel.webview.html = page;
}

/** Nothing is loaded and nothing runs, whatever the page itself says about that. */
export function confined(html: string): string {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return html.replace(/<head>/i, (head) => `${head}<meta http-equiv="Content-Security-Policy" content="${policy}">`);
}
