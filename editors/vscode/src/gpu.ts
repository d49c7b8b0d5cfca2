// The target GPU: what the server uses, and what the user picked in this workspace.

import * as vscode from "vscode";
import { kernelEditor } from "./documents";
import type { Estimate } from "./estimate";
import { remembered } from "./gpuList";
import type { Session } from "./session";

const PICKED = "warplens.pickedGpu";
const RECENT = "warplens.recentGpus";

/** What `warplens.target` answers. */
interface Target {
  gpu: string;
  source: "session" | "settings" | "config" | "build" | "default";
}

export class Gpu implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [this.changed];
  private shown: string | undefined;
  private missing: string[] = [];
  private requests = 0;
  private source: Target["source"] | undefined;

  readonly onDidChange = this.changed.event;

  constructor(
    private readonly session: Session,
    private readonly memory: vscode.Memento,
    private readonly everywhere: vscode.Memento,
  ) {
    const refresh = () => void this.refresh();
    this.disposables.push(
      session.onDidRefresh(refresh),
      session.onDidChange((phase) => {
        if (phase.kind === "running") void this.restore().then(() => this.refresh());
      }),
      vscode.window.onDidChangeActiveTextEditor(refresh),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("warplens.gpu")) void this.settingChanged();
      }),
    );
  }

  /** The profile id as far as it is known. */
  get id(): string | undefined {
    const setting = vscode.workspace.getConfiguration("warplens", kernelEditor()?.document ?? null);
    return this.shown ?? this.memory.get<string>(PICKED) ?? setting.get<string | null>("gpu") ?? undefined;
  }

  /** Whether nothing names a GPU, so that it is the server's default. */
  get isDefault(): boolean {
    return this.source === "default";
  }

  /** The GPUs picked last, in any workspace. */
  get recent(): readonly string[] {
    return this.everywhere.get<string[]>(RECENT) ?? [];
  }

  /** Headers that the file in front includes and that were not found. */
  get missingHeaders(): readonly string[] {
    return this.missing;
  }

  /** Makes it the target, here and the next time that this workspace is opened. */
  async pick(id: string): Promise<void> {
    await this.session.execute("warplens.selectGpu", { gpu: id });
    await this.memory.update(PICKED, id);
    await this.everywhere.update(RECENT, remembered(this.recent, id));
    this.show(id, "session");
  }

  /**
   * Asks the server which GPU the file in front is judged for: the settings, a warplens.toml, the default and the
   * user's pick all have a say in it, and only the server knows who won.
   */
  async refresh(): Promise<void> {
    const uri = kernelEditor()?.document.uri.toString();
    if (uri === undefined || this.session.server === undefined) return;
    const request = ++this.requests;
    try {
      const target = await this.session.execute<Target>("warplens.target", { uri });
      const estimate = await this.session.execute<Estimate>("warplens.estimate", { uri });
      if (request === this.requests) this.show(target.gpu, target.source, estimate?.missing_includes ?? []);
    } catch {
      // The status bar keeps what it showed; whatever is wrong with the file is reported in the file.
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private async restore(): Promise<void> {
    const picked = this.memory.get<string>(PICKED);
    if (picked === undefined) return;
    try {
      await this.session.execute("warplens.selectGpu", { gpu: picked });
    } catch {
      // A profile that this server does not know.
      await this.memory.update(PICKED, undefined);
    }
  }

  /** A setting changed by hand is the newer wish; the pick of this session would hide it. */
  private async settingChanged(): Promise<void> {
    if (this.memory.get<string>(PICKED) === undefined) return;
    this.shown = undefined;
    await this.memory.update(PICKED, undefined);
    await this.session.restart();
  }

  private show(id: string | undefined, source = this.source, missing = this.missing): void {
    if (id === this.shown && source === this.source && missing.join() === this.missing.join()) return;
    this.shown = id;
    this.source = source;
    this.missing = missing;
    this.changed.fire();
  }
}
