// warplens.selectGpu: a list of the server's profiles. warplens.detectGpu: the GPU of this machine.

import * as vscode from "vscode";
import type { App } from "../extension";
import { type GpuEntry, listed, type Profile } from "../gpuList";
import { ask } from "../program";

const DETECT = "$(search) Detect the GPU of this machine…";

export async function selectGpu(app: App, given: { gpu?: string } = {}): Promise<void> {
  const id = given.gpu ?? (await choose(app));
  if (id !== undefined) await app.gpu.pick(id);
}

async function choose(app: App): Promise<string | undefined> {
  const current = app.gpu.id;
  const items = ask(app.session, ["gpus", "--format", "json"]).then((answer) => [
    ...listed((JSON.parse(answer) as { gpus: Profile[] }).gpus, current, app.gpu.recent).map(item),
    { label: DETECT, alwaysShow: true },
  ]);
  const choice = await vscode.window.showQuickPick<vscode.QuickPickItem & GpuEntry>(items, {
    title: "Predict costs for which GPU?",
    placeHolder: current === undefined ? "A profile" : `Now ${current}`,
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (choice?.label === DETECT) await detectGpu(app);
  return choice?.id;
}

function item(entry: GpuEntry): vscode.QuickPickItem & GpuEntry {
  return entry.id === undefined ? { ...entry, kind: vscode.QuickPickItemKind.Separator } : entry;
}

interface Detected {
  gpus: { tool: string; name: string; profile: string | null }[];
}

/**
 * Proposes the GPU of this machine. That runs nvidia-smi, rocminfo and clinfo, which only the user's own setting allows: asked here,
 * and kept there.
 */
export async function detectGpu(app: App): Promise<void> {
  const section = vscode.workspace.getConfiguration("warplens");
  if (section.inspect<boolean>("detectGpu")?.globalValue !== true) {
    const run = "Run Them";
    const choice = await vscode.window.showInformationMessage(
      "warplens runs nvidia-smi, rocminfo and clinfo to see which GPU this machine has.",
      { modal: true, detail: "The setting warplens.detectGpu keeps the answer." },
      run,
    );
    if (choice !== run) return;
    await section.update("detectGpu", true, vscode.ConfigurationTarget.Global);
  }
  await proposeDetected(app);
}

/** Runs the tools and proposes what they list; says so where they list nothing. */
export async function proposeDetected(app: App): Promise<void> {
  // Without a GPU it ends with status 1.
  const { gpus } = JSON.parse(await ask(app.session, ["gpus", "--detect", "--format", "json"], [0, 1])) as Detected;
  const found = gpus.find(({ profile }) => profile !== null);
  if (found === undefined || found.profile === null) {
    const [unknown] = gpus;
    const what = unknown === undefined ? "No GPU was found on this machine" : `There is no profile for ${unknown.name}`;
    void vscode.window.showInformationMessage(`warplens: ${what}.`);
    return;
  }
  if (found.profile === app.gpu.id) {
    void vscode.window.showInformationMessage(`warplens: this machine has ${found.name}, which costs are predicted for.`);
    return;
  }
  const use = `Use ${found.profile}`;
  const choice = await vscode.window.showInformationMessage(
    `warplens: this machine has ${found.name}. Costs are predicted for ${app.gpu.id ?? "another GPU"}.`,
    use,
    "Keep",
  );
  if (choice === use) await app.gpu.pick(found.profile);
}
