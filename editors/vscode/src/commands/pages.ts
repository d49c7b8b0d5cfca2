// Commands whose answer is something to read: breakdown, compareGpus, report, graph, estimate.

import * as vscode from "vscode";
import { requireEditor } from "../documents";
import { kernelAt } from "../estimate";
import type { App } from "../extension";

export interface Target {
  uri?: string;
  kernel?: string;
}

export async function breakdown(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { markdown } = await app.session.execute<{ markdown: string }>("warplens.breakdown", target);
  await app.pages.show(`Cost of ${target.kernel}`, markdown);
}

export async function compareGpus(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { markdown } = await app.session.execute<{ markdown: string }>("warplens.compareGpus", target);
  await app.pages.show(`GPUs for ${target.kernel}`, markdown);
}

export async function report(app: App, given: Target = {}): Promise<void> {
  const uri = given.uri ?? requireEditor().document.uri.toString();
  const { html } = await app.session.execute<{ html: string }>("warplens.report", { uri });
  showPage("warplens.report", "warplens report", html);
}

export async function graph(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { svg } = await app.session.execute<{ svg: string }>("warplens.graph", target);
  const html = `<!DOCTYPE html><html><head><title>Work flow graph</title></head><body>${svg}</body></html>`;
  showPage("warplens.graph", `Work flow graph of ${target.kernel}`, html);
}

function showPage(type: string, title: string, html: string): void {
  const panel = vscode.window.createWebviewPanel(type, title, vscode.ViewColumn.Beside, {
    enableScripts: false,
    localResourceRoots: [],
  });
  panel.webview.html = confined(html);
}

/** The page carries all it needs: nothing is loaded and nothing runs, whatever the page itself says about that. */
function confined(html: string): string {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return html.replace(/<head>/i, (head) => `${head}<meta http-equiv="Content-Security-Policy" content="${policy}">`);
}

export async function estimate(app: App, given: Target = {}): Promise<void> {
  const uri = given.uri ?? requireEditor().document.uri.toString();
  const answer = await app.session.execute<unknown>("warplens.estimate", { ...given, uri });
  const document = await vscode.workspace.openTextDocument({
    language: "json",
    content: `${JSON.stringify(answer, null, 2)}\n`,
  });
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside });
}

/** The kernel that was given, or the one at the cursor. */
export async function kernel(app: App, given: Target): Promise<Required<Target>> {
  if (given.uri !== undefined && given.kernel !== undefined) return { uri: given.uri, kernel: given.kernel };
  const editor = requireEditor();
  const found = await kernelAt(app.session, editor.document, editor.selection.active.line);
  if (found === undefined) throw new Error("there is no kernel in this file");
  return { uri: editor.document.uri.toString(), kernel: found.kernel };
}
