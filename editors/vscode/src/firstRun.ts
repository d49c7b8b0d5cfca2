// What happens once: the walkthrough opens, and the GPU is proposed as a choice.

import * as vscode from "vscode";
import { proposeDetected } from "./commands/selectGpu";
import type { App } from "./extension";

const WALKTHROUGH = "warplens.walkthroughShown";
const PROPOSED = "warplens.gpuProposed";

/** Opens the walkthrough at the first run; not for those who want nothing opened at the start. */
export async function openWalkthrough(memory: vscode.Memento): Promise<void> {
  if (memory.get<boolean>(WALKTHROUGH) === true) return;
  if (vscode.workspace.getConfiguration("workbench").get<string>("startupEditor") === "none") return;
  await memory.update(WALKTHROUGH, true);
  await vscode.commands.executeCommand("workbench.action.openWalkthrough", "warplens.warplens#start", false);
}

/** Says once that the GPU is the default where nothing chose one, and offers others. */
export function proposeGpu(app: App, memory: vscode.Memento): vscode.Disposable {
  return app.gpu.onDidChange(async () => {
    if (!app.gpu.isDefault || memory.get<boolean>(PROPOSED) === true) return;
    await memory.update(PROPOSED, true);
    const detection = vscode.workspace.getConfiguration("warplens").inspect<boolean>("detectGpu")?.globalValue;
    if (detection === true) return proposeDetected(app);
    const [choose, detect] = ["Choose…", "Detect…"];
    const choice = await vscode.window.showInformationMessage(
      `warplens: costs are predicted for ${app.gpu.id ?? "a GPU"}, the default.`,
      choose,
      detect,
      "Keep",
    );
    if (choice === choose) await vscode.commands.executeCommand("warplens.selectGpu");
    if (choice === detect) await vscode.commands.executeCommand("warplens.detectGpu");
  });
}
