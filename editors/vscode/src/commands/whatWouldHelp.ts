// warplens.whatWouldHelp: what a kernel is predicted to gain, the most first; an action that is chosen is applied.

import * as vscode from "vscode";
import type { WorkspaceEdit } from "vscode-languageclient/node";
import type { App } from "../extension";
import { type Help, entries } from "../help";
import { kernel, type Target } from "./pages";

interface Entry extends vscode.QuickPickItem {
  edit: WorkspaceEdit | undefined;
}

export async function whatWouldHelp(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const help = await app.session.execute<Help<WorkspaceEdit>>("warplens.whatWouldHelp", target);
  const found = entries(help);
  if (found.length === 0) {
    void vscode.window.showInformationMessage(`${target.kernel}: nothing is predicted to help`);
    return;
  }
  const items: Entry[] = found.map(({ label, description, edit }) => ({ label, description, edit }));
  const choice = await vscode.window.showQuickPick(items, {
    title: `What would help ${target.kernel}`,
    placeHolder: "A light bulb is an edit that is made when it is chosen; the others are causes",
    matchOnDescription: true,
  });
  if (choice === undefined) return;
  // A cause has no edit of its own: the page says where it comes from.
  if (choice.edit === undefined) await vscode.commands.executeCommand("warplens.breakdown", target);
  else await app.session.apply(choice.edit);
}
