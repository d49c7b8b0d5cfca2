// warplens.toggleHints, warplens.toggleHeatMap: flips a setting where it is set, otherwise in the user's settings.

import * as vscode from "vscode";
import { kernelEditor } from "../documents";

export const toggleHints = (): Promise<void> => flip("inlayHints.enable");
export const toggleHeatMap = (): Promise<void> => flip("heatMap.enable");

async function flip(key: string): Promise<void> {
  const section = vscode.workspace.getConfiguration("warplens", kernelEditor()?.document ?? null);
  const where = section.inspect<boolean>(key);
  const target =
    where?.workspaceFolderValue !== undefined
      ? vscode.ConfigurationTarget.WorkspaceFolder
      : where?.workspaceValue !== undefined
        ? vscode.ConfigurationTarget.Workspace
        : vscode.ConfigurationTarget.Global;
  await section.update(key, !section.get<boolean>(key, true), target);
}
