// warplens.menu: what a click on the status bar item offers.

import * as vscode from "vscode";
import { kernelEditor } from "../documents";
import type { App } from "../extension";

interface Entry extends vscode.QuickPickItem {
  command: string;
}

export async function menu(app: App): Promise<void> {
  const runs = app.session.server !== undefined;
  const entries: (Entry | false)[] = [
    runs && { command: "warplens.selectGpu", label: "$(circuit-board) Select the target GPU…", description: app.gpu.id ?? "" },
    runs && inKernelFile({ command: "warplens.launchPanel", label: "$(dashboard) Open the launch panel of the kernel at the cursor" }),
    runs && { command: "warplens.revealKernel", label: "$(symbol-function) Go to a kernel of the open files…" },
    runs && inKernelFile({ command: "warplens.fixes", label: "$(wand) Show the cheapest fixes in this file" }),
    runs && inKernelFile({ command: "warplens.setLaunch", label: "$(rocket) Set the launch of the kernel at the cursor…" }),
    runs && inKernelFile({ command: "warplens.setRun", label: "$(terminal) Set how the program is run…" }),
    runs && inKernelFile({ command: "warplens.nextLaunch", label: "$(arrow-swap) Show the next launch of the kernel at the cursor" }),
    runs && inKernelFile({ command: "warplens.pin", label: "$(pinned) Pin or unpin the time of the kernel at the cursor" }),
    runs && inKernelFile({ command: "warplens.whatWouldHelp", label: "$(lightbulb) What would help the kernel at the cursor?" }),
    runs && inKernelFile({ command: "warplens.breakdown", label: "$(graph) Show the cost breakdown of the kernel at the cursor" }),
    runs && inKernelFile({ command: "warplens.compareGpus", label: "$(list-ordered) Compare GPUs for the kernel at the cursor" }),
    runs && inKernelFile({ command: "warplens.lanes", label: "$(type-hierarchy) Show the lanes of the access at the cursor" }),
    runs && inKernelFile({ command: "warplens.graph", label: "$(git-merge) Draw the work flow graph of the kernel at the cursor" }),
    runs && inKernelFile({ command: "warplens.report", label: "$(book) Show the report of this file" }),
    runs && inKernelFile({ command: "warplens.program", label: "$(list-tree) Show the account of the program around this file" }),
    runs && { command: "warplens.explain", label: "$(question) Explain a rule…" },
    { command: "warplens.toggleHints", label: "$(eye) Toggle inlay hints" },
    { command: "warplens.toggleHeatMap", label: "$(flame) Toggle the heat map" },
    runs && {
      command: "warplens.recordTrace",
      label: app.session.recording === undefined ? "$(record) Record a trace for a bug report…" : "$(debug-stop) End the recording",
    },
    { command: "warplens.restart", label: "$(debug-restart) Restart the server" },
    { command: "warplens.openLogs", label: "$(output) Open the logs" },
  ];
  const choice = await vscode.window.showQuickPick(
    entries.filter((entry) => entry !== false),
    { title: "warplens" },
  );
  if (choice !== undefined) await vscode.commands.executeCommand(choice.command);
}

function inKernelFile(entry: Entry): Entry | false {
  return kernelEditor() !== undefined && entry;
}
