// Commands whose answer is something to read: breakdown, compareGpus, report, program, graph, estimate.

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

export async function compareAllGpus(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { markdown } = await app.session.execute<{ markdown: string }>("warplens.compareGpus", { ...target, all: true });
  await app.pages.show(`All GPUs for ${target.kernel}`, markdown);
}

export async function report(app: App, given: Target = {}): Promise<void> {
  const uri = given.uri ?? requireEditor().document.uri.toString();
  const name = vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
  const make = async () => (await app.session.execute<{ html: string }>("warplens.report", { uri })).html;
  const title = `Report: ${name.split("/").at(-1)}`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `warplens: report of ${name}` }, () =>
    app.views.show(`report ${uri}`, title, make),
  );
}

export async function program(app: App, given: Target = {}): Promise<void> {
  const uri = given.uri ?? requireEditor().document.uri.toString();
  const name = vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
  const make = async () => (await app.session.execute<{ html: string }>("warplens.program", { uri })).html;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `warplens: program of ${name}` }, () =>
    app.views.show(`program ${uri}`, `Program: ${name.split("/").at(-1)}`, make),
  );
}

export async function graph(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const make = async () => (await app.session.execute<{ html: string }>("warplens.graph", target)).html;
  await app.views.show(`graph ${target.uri} ${target.kernel}`, `Work flow graph of ${target.kernel}`, make);
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
