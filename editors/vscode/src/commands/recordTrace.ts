// warplens.recordTrace: starts the server anew with what it is told kept in a file, and ends that.

import * as vscode from "vscode";
import type { App } from "../extension";

export async function recordTrace(app: App, folder: vscode.Uri): Promise<void> {
  const recorded = app.session.recording;
  if (recorded !== undefined) {
    await app.session.restartRecorded(undefined);
    await offer(vscode.Uri.file(recorded));
    return;
  }
  const record = "Record";
  const choice = await vscode.window.showWarningMessage(
    "The server starts anew and keeps every message of this editor in a file.",
    {
      modal: true,
      detail: "The file holds the text of the documents that you have open or open from now on. Look at it before you give it to others.",
    },
    record,
  );
  if (choice !== record) return;
  await vscode.workspace.fs.createDirectory(folder);
  const name = `trace-${new Date().toISOString().replaceAll(/[:.]/g, "-")}.jsonl`;
  await app.session.restartRecorded(vscode.Uri.joinPath(folder, name).fsPath);
}

async function offer(file: vscode.Uri): Promise<void> {
  const open = "Open It";
  const copy = "Copy Its Path";
  const choice = await vscode.window.showInformationMessage(`The trace is ${file.fsPath}`, open, copy);
  if (choice === open) await vscode.window.showTextDocument(file);
  if (choice === copy) await vscode.env.clipboard.writeText(file.fsPath);
}
