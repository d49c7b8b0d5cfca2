// warplens.toggleHints: flips the setting where it is set, otherwise in the user's settings.

import * as vscode from "vscode";
import { kernelEditor } from "../documents";

export async function toggleHints(): Promise<void> {
  const section = vscode.workspace.getConfiguration("warplens", kernelEditor()?.document ?? null);
  const key = "inlayHints.enable";
  const where = section.inspect<boolean>(key);
  const target =
    where?.workspaceFolderValue !== undefined
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : where?.workspaceValue !== undefined
        ? vscode.ConfigurationTarget.Workspace
        : vscode.ConfigurationTarget.Global;
  await section.update(key, !section.get<boolean>(key, true), target);
}
