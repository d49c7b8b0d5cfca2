// The launch panel: a kernel's block, grid, arguments and dynamic shared memory, and what they are predicted to take while they are
// typed. Nothing is chosen until a button says so.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { WorkspaceEdit } from "vscode-languageclient/node";
import type { Kept } from "./kept";
import { type LaunchValues, parseFields } from "./launch";
import { type Session, text } from "./session";
import { fields, figures, page, type Trial } from "./trial";

interface Message {
  what: "try" | "use" | "write" | "keep" | "back";
  values: Record<string, string>;
}

interface Kernel {
  uri: string;
  kernel: string;
}

export class LaunchPanels implements vscode.Disposable {
  private readonly panels = new Map<string, vscode.WebviewPanel>();

  constructor(
    private readonly session: Session,
    private readonly kept: Kept,
  ) {}

  async show(target: Kernel): Promise<void> {
    const key = `${target.uri} ${target.kernel}`;
    const trial = await this.attempt(target, {});
    let panel = this.panels.get(key);
    if (panel === undefined) {
      panel = vscode.window.createWebviewPanel(
        "warplens.launch",
        `Launch of ${target.kernel}`,
        { viewColumn: vscode.ViewColumn.Beside },
        { enableScripts: true, enableCommandUris: false, localResourceRoots: [], retainContextWhenHidden: true },
      );
      this.panels.set(key, panel);
      panel.onDidDispose(() => this.panels.delete(key));
      const own = panel;
      own.webview.onDidReceiveMessage((message: Message) => this.received(own, target, message));
    }
    panel.webview.html = page(trial, randomBytes(16).toString("base64"));
    panel.reveal();
  }

  dispose(): void {
    for (const panel of [...this.panels.values()]) panel.dispose();
  }

  private attempt(target: Kernel, values: LaunchValues): Promise<Trial<WorkspaceEdit>> {
    return this.session.execute<Trial<WorkspaceEdit>>("warplens.tryLaunch", { ...target, ...values });
  }

  private async received(panel: vscode.WebviewPanel, target: Kernel, { what, values: typed }: Message): Promise<void> {
    try {
      const values = what === "back" ? {} : parseFields(typed);
      if (typeof values === "string") throw new Error(values);
      if (what === "back") await this.kept.forget(target);
      if (what === "use" || what === "back") await this.session.execute("warplens.setLaunch", { ...target, ...values });
      if (what === "keep") await this.kept.keep(target, values);
      const trial = await this.attempt(target, values);
      if (what === "write") {
        if (trial.edit === null) throw new Error("there is no line above the kernel to write it on");
        await this.session.apply(trial.edit);
      }
      void panel.webview.postMessage({ figures: figures(trial), ...(what === "back" && { fields: fields(trial) }) });
    } catch (error) {
      void panel.webview.postMessage({ wrong: text(error) });
    }
  }
}
