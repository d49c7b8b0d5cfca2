// The side bar's list of the kernels of all open files, those that take longest first.

import * as vscode from "vscode";
import { describeKernel, fileOf, filtered, type KernelEntry } from "./kernels";
import type { Session } from "./session";

/** How long after a change the list is made anew. */
const PAUSE_MS = 500;

export class KernelTree implements vscode.TreeDataProvider<KernelEntry>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<KernelEntry>;
  private readonly disposables: vscode.Disposable[];
  private filter = "";
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly session: Session) {
    this.view = vscode.window.createTreeView("warplens.kernels", { treeDataProvider: this });
    const soon = () => this.soon();
    this.disposables = [
      this.view,
      this.changed,
      session.onDidRefresh(soon),
      session.onDidChange(soon),
      vscode.workspace.onDidOpenTextDocument(soon),
      vscode.workspace.onDidCloseTextDocument(soon),
      vscode.workspace.onDidChangeTextDocument(soon),
      this.view.onDidChangeVisibility(soon),
    ];
  }

  async getChildren(of?: KernelEntry): Promise<KernelEntry[]> {
    if (of !== undefined || this.session.server === undefined) return [];
    return filtered(await kernels(this.session), this.filter);
  }

  getTreeItem(entry: KernelEntry): vscode.TreeItem {
    const item = new vscode.TreeItem(entry.kernel);
    item.description = describeKernel(entry);
    item.tooltip = `${entry.kernel}, ${fileOf(entry.uri)}: ${describeKernel(entry)}, occupancy ${Math.round(entry.occupancy * 100)} %, ${entry.gpu}`;
    item.iconPath = new vscode.ThemeIcon(entry.best === null ? "symbol-function" : "lightbulb");
    item.contextValue = "kernel";
    item.command = { command: "warplens.revealKernel", title: "Show the Kernel", arguments: [entry] };
    return item;
  }

  async askFilter(): Promise<void> {
    const typed = await vscode.window.showInputBox({
      title: "Kernels",
      prompt: "Words of a kernel's name or its file; empty shows all",
      value: this.filter,
    });
    if (typed === undefined) return;
    this.filter = typed;
    this.view.description = typed;
    this.changed.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private soon(): void {
    if (!this.view.visible) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed.fire(), PAUSE_MS);
  }
}

/** The kernels of all open files, those that take longest first. */
export async function kernels(session: Session): Promise<KernelEntry[]> {
  return (await session.execute<{ kernels: KernelEntry[] }>("warplens.kernels", {})).kernels;
}

/** Puts the cursor on a kernel's name. */
export async function reveal({ uri, range }: Pick<KernelEntry, "uri" | "range">): Promise<void> {
  const start = new vscode.Position(range.start.line, range.start.character);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(start, start) });
}
