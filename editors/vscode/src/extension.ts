// Starts the warplens server for CUDA, OpenCL and HIP files and puts its commands into the palette.

import * as vscode from "vscode";
import { explain } from "./commands/explain";
import { compareKernels, fixes, revealKernel } from "./commands/kernels";
import { lanes } from "./commands/lanes";
import { launchPanel } from "./commands/launchPanel";
import { menu } from "./commands/menu";
import { breakdown, compareAllGpus, compareGpus, estimate, graph, program, report } from "./commands/pages";
import { nextLaunch } from "./commands/nextLaunch";
import { pin } from "./commands/pin";
import { openSample } from "./commands/openSample";
import { recordTrace } from "./commands/recordTrace";
import { detectGpu, selectGpu } from "./commands/selectGpu";
import { setLaunch } from "./commands/setLaunch";
import { setRun } from "./commands/setRun";
import { toggleHeatMap, toggleHints } from "./commands/toggleHints";
import { whatWouldHelp } from "./commands/whatWouldHelp";
import { kernelEditor } from "./documents";
import { openWalkthrough, proposeGpu } from "./firstRun";
import { Gpu } from "./gpu";
import { HeatMap } from "./heat";
import { Kept } from "./kept";
import { KernelTree } from "./kernelTree";
import { LaunchPanels } from "./launchPanel";
import { Pages } from "./pages";
import { Session, text } from "./session";
import { StatusItem } from "./status";
import { Views } from "./views";

/** What the commands work with. */
export interface App {
  session: Session;
  gpu: Gpu;
  pages: Pages;
  views: Views;
  launches: LaunchPanels;
}

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("warplens");
  session = new Session(context.extensionUri, log);
  const gpu = new Gpu(session, context.workspaceState, context.globalState);
  const pages = new Pages();
  const views = new Views(session);
  const kept = new Kept(session, context.workspaceState);
  const launches = new LaunchPanels(session, kept);
  const app: App = { session, gpu, pages, views, launches };
  const tree = new KernelTree(session);
  const heat = new HeatMap(session, context.extensionUri);
  context.subscriptions.push(log, session, gpu, pages, views, launches, tree, heat, new StatusItem(session, gpu));
  context.subscriptions.push(
    proposeGpu(app, context.globalState),
    session.onDidChange(({ kind }) => {
      if (kind === "running") void kept.restore().catch((error) => log.appendLine(`a kept launch was not set: ${text(error)}`));
    }),
  );

  const command = (name: string, run: (given: never) => Promise<void>) =>
    context.subscriptions.push(vscode.commands.registerCommand(`warplens.${name}`, reported(run)));
  command("selectGpu", (given) => selectGpu(app, given));
  command("detectGpu", () => detectGpu(app));
  command("setLaunch", (given) => setLaunch(app, given));
  command("setRun", () => setRun(app));
  command("launchPanel", (given) => launchPanel(app, given));
  command("nextLaunch", (given) => nextLaunch(app, given));
  command("pin", (given) => pin(app, given));
  command("whatWouldHelp", (given) => whatWouldHelp(app, given));
  command("breakdown", (given) => breakdown(app, given));
  command("compareGpus", (given) => compareGpus(app, given));
  command("compareAllGpus", (given) => compareAllGpus(app, given));
  command("compareKernels", (given) => compareKernels(app, given));
  command("revealKernel", (given) => revealKernel(app, given));
  command("filterKernels", () => tree.askFilter());
  command("fixes", (given) => fixes(app, given));
  command("report", (given) => report(app, given));
  command("program", (given) => program(app, given));
  command("graph", (given) => graph(app, given));
  command("estimate", (given) => estimate(app, given));
  command("explain", (given) => explain(app, given));
  command("lanes", () => lanes(app));
  command("menu", () => menu(app));
  command("toggleHints", toggleHints);
  command("toggleHeatMap", toggleHeatMap);
  command("openSample", () => openSample(context.extensionUri));
  command("recordTrace", () => recordTrace(app, context.logUri));
  command("restart", () => app.session.restart());
  command("openLogs", async () => log.show());

  context.subscriptions.push(
    vscode.window.onDidChangeActiveTextEditor(markKernelFile),
    vscode.workspace.onDidOpenTextDocument(markKernelFile),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("warplens.server.path")) void pathChanged(app.session);
    }),
  );
  markKernelFile();
  void openWalkthrough(context.globalState);
  await session.start();
}

export async function deactivate(): Promise<void> {
  await session?.stop();
}

/** A failed command is said to the user, once, in words. */
function reported(run: (given: never) => Promise<void>): (given: unknown) => Promise<void> {
  return async (given) => {
    try {
      // Menus pass their own things; our lenses and actions pass an object.
      await run((given ?? undefined) as never);
    } catch (error) {
      void vscode.window.showErrorMessage(`warplens: ${text(error)}`);
    }
  };
}

/** For the palette: commands about a kernel appear where there may be one. */
function markKernelFile(): void {
  void vscode.commands.executeCommand("setContext", "warplens.kernelFile", kernelEditor() !== undefined);
}

/** A server that runs is not taken away without asking. */
async function pathChanged(session: Session): Promise<void> {
  if (session.phase.kind === "failed") return session.restart();
  const restart = "Restart";
  const choice = await vscode.window.showInformationMessage(
    "The path of the warplens server has changed. It is looked at when the server starts.",
    restart,
  );
  if (choice === restart) await session.restart();
}
