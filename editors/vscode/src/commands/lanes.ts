// warplens.lanes: where the lanes of a warp go at the access under the cursor. The page follows the cursor.

import * as vscode from "vscode";
import { kernelEditor, requireEditor } from "../documents";
import type { App } from "../extension";

const KEY = "lanes";
/** A cursor that moves on is not followed. */
const PAUSE_MS = 150;

let following: vscode.Disposable | undefined;

export async function lanes(app: App): Promise<void> {
  let editor = requireEditor();
  const make = async (): Promise<string | undefined> => {
    // The page itself may have the focus: then the editor that had it before speaks.
    editor = kernelEditor() ?? editor;
    const position = editor.selection.active;
    const { html } = await app.session.execute<{ html: string }>("warplens.lanes", {
      uri: editor.document.uri.toString(),
      position: { line: position.line, character: position.character },
    });
    return html;
  };
  await app.views.show(KEY, "Lanes at the Cursor", make);
  following?.dispose();
  following = follow(app);
}

function follow(app: App): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  const soon = () => {
    clearTimeout(timer);
    if (!app.views.has(KEY)) return following?.dispose();
    timer = setTimeout(() => void app.views.refresh(KEY), PAUSE_MS);
  };
  return vscode.Disposable.from(
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      if (textEditor === kernelEditor()) soon();
    }),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document === kernelEditor()?.document) soon();
    }),
    { dispose: () => clearTimeout(timer) },
  );
}
