// warplens.selectGpu: a list of the server's profiles.

import * as vscode from "vscode";
import type { App } from "../extension";
import { ask } from "../program";

interface Profile {
  id: string;
  name: string;
  vendor: string;
  architecture: string;
  figures: Record<string, { value: unknown } | undefined>;
}

export async function selectGpu(app: App, given: { gpu?: string } = {}): Promise<void> {
  const id = given.gpu ?? (await choose(app));
  if (id !== undefined) await app.gpu.pick(id);
}

async function choose(app: App): Promise<string | undefined> {
  const current = app.gpu.id;
  const items = ask(app.session, ["gpus", "--format", "json"]).then((answer) =>
    (JSON.parse(answer) as { gpus: Profile[] }).gpus
      .map((gpu) => ({
        label: gpu.id === current ? `$(check) ${gpu.id}` : gpu.id,
        description: gpu.name,
        detail: keyFigures(gpu),
        id: gpu.id,
      }))
      // The one in use first, the others as the server lists them.
      .sort((a, b) => Number(b.id === current) - Number(a.id === current)),
  );
  const choice = await vscode.window.showQuickPick(items, {
    title: "Predict costs for which GPU?",
    placeHolder: current === undefined ? "A profile" : `Now ${current}`,
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return choice?.id;
}

function keyFigures(gpu: Profile): string {
  const figure = (name: string, unit: string) => {
    const value = gpu.figures[name]?.value;
    return typeof value === "number" ? [`${value} ${unit}`] : [];
  };
  return [
    `${gpu.vendor} ${gpu.architecture}`,
    ...figure("sms", "SMs"),
    ...figure("sm_clock_mhz", "MHz"),
    ...figure("dram_bandwidth_gb_s", "GB/s"),
  ].join(" · ");
}
