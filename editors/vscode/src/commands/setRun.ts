// warplens.setRun: asks for the arguments that the programs of a folder are run with, starting from what holds now. Left empty, the
// run is again what warplens.toml, a launch configuration, a Makefile and the like say.

import * as vscode from "vscode";
import { requireEditor } from "../documents";
import type { Estimate } from "../estimate";
import type { App } from "../extension";
import { argumentsOf } from "../launch";

/** What the server writes before the run in a hover. */
const RUN_AS = "run as ";

export async function setRun(app: App): Promise<void> {
  const document = requireEditor().document;
  const uri = document.uri.toString();
  const estimate = await app.session.execute<Estimate>("warplens.estimate", { uri });
  const said = estimate?.results.map(({ launch }) => launch.run).find((run) => run != null);
  const typed = await vscode.window.showInputBox({
    title: "How programs in this folder are run",
    prompt: "Their arguments, as in a shell. Left empty, the run is again what the files beside them say.",
    placeHolder: "-n 4096 input.bin",
    value: said == null ? "" : argumentsOf(said),
  });
  if (typed === undefined) return;
  await app.session.execute("warplens.setRun", { uri, ...(typed.trim() !== "" && { arguments: typed }) });
}

/** The hover with a link behind how the program is run. */
export function withRunLink(hover: vscode.Hover | null | undefined): vscode.Hover | null | undefined {
  for (const content of hover?.contents ?? []) {
    if (content instanceof vscode.MarkdownString && content.value.includes(RUN_AS)) {
      content.isTrusted = { enabledCommands: ["warplens.setRun"] };
      content.appendMarkdown("\n\n[Run it with other arguments…](command:warplens.setRun)");
      break;
    }
  }
  return hover;
}
