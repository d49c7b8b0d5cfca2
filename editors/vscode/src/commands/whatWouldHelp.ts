// warplens.whatWouldHelp: what a kernel is predicted to gain, the most first; an edit that is chosen is applied, what else is chosen is shown.

import * as vscode from "vscode";
import type { WorkspaceEdit } from "vscode-languageclient/node";
import type { App } from "../extension";
import { type Help, type Place, entries } from "../help";
import { kernel, type Target } from "./pages";

interface Entry extends vscode.QuickPickItem {
  edit: WorkspaceEdit | undefined;
  place: Place | undefined;
}

export async function whatWouldHelp(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const help = await app.session.execute<Help<WorkspaceEdit>>("warplens.whatWouldHelp", target);
  const found = entries(help);
  if (found.length === 0) {
    void vscode.window.showInformationMessage(`${target.kernel}: nothing is predicted to help`);
    return;
  }
  const items: Entry[] = found.map(({ label, description, edit, place }) => ({ label, description, edit, place }));
  const choice = await vscode.window.showQuickPick(items, {
    title: `What would help ${target.kernel}`,
    placeHolder: "A light bulb is an edit that is made when it is chosen; findings and causes lead to their place",
    matchOnDescription: true,
  });
  if (choice === undefined) return;
  if (choice.edit !== undefined) await app.session.apply(choice.edit);
  else if (choice.place !== undefined) await show(target.uri, choice.place);
  // A cause without a place: the page says where it comes from.
  else await vscode.commands.executeCommand("warplens.breakdown", target);
}

async function show(uri: string, { start }: Place): Promise<void> {
  const at = new vscode.Position(start.line, start.character);
  await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: new vscode.Range(at, at) });
}
