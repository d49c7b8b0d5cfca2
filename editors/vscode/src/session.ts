// The server's life: found, started, restarted, lost.

import * as vscode from "vscode";
import { State, type WorkspaceEdit } from "vscode-languageclient/node";
import { WarplensClient } from "./client";
import { describe, type Failure, locate, type Server } from "./locate";

export type Phase =
  | { kind: "starting" }
  | { kind: "running"; server: Server; failures: Failure[] }
  | { kind: "failed"; message: string; failures: Failure[] };

export class Session implements vscode.Disposable {
  private client: WarplensClient | undefined;
  private current: Phase = { kind: "starting" };
  private readonly changed = new vscode.EventEmitter<Phase>();
  /** Starts and stops follow one another; two restarts in a row do not race. */
  private queue: Promise<void> = Promise.resolve();

  private record: string | undefined;
  private readonly refreshed = new vscode.EventEmitter<void>();

  readonly onDidChange = this.changed.event;
  /** What the server predicted has changed: settings, a warplens.toml, a launch. */
  readonly onDidRefresh = this.refreshed.event;

  constructor(
    private readonly extension: vscode.Uri,
    readonly log: vscode.OutputChannel,
  ) {}

  get phase(): Phase {
    return this.current;
  }

  /** The file that this session is recorded in; none where it is not. */
  get recording(): string | undefined {
    return this.record;
  }

  /** Starts anew, with the messages to the server recorded in a file, or without. */
  restartRecorded(file: string | undefined): Promise<void> {
    this.record = file;
    return this.restart();
  }

  /** The program in use; none until one runs. */
  get server(): Server | undefined {
    return this.current.kind === "running" ? this.current.server : undefined;
  }

  start(): Promise<void> {
    return this.enqueue(() => this.open());
  }

  restart(): Promise<void> {
    return this.enqueue(async () => {
      await this.close();
      await this.open();
    });
  }

  stop(): Promise<void> {
    return this.enqueue(() => this.close());
  }

  /** Calls a command of the server; rejects with a line for the user. */
  execute<T>(command: string, argument: object): Promise<T> {
    if (this.client === undefined || this.current.kind !== "running") {
      return Promise.reject(new Error("the server does not run"));
    }
    return this.client.execute<T>(command, argument);
  }

  /** Makes an edit that the server gave; rejects where the text has changed since. */
  async apply(edit: WorkspaceEdit): Promise<void> {
    const made = await this.client?.apply(edit);
    if (made !== true) throw new Error("the edit could not be made: the text has changed");
  }

  dispose(): void {
    this.changed.dispose();
    this.refreshed.dispose();
  }

  private enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.queue.then(work);
    this.queue = done.catch(() => {});
    return done;
  }

  private async open(): Promise<void> {
    this.become({ kind: "starting" });
    const { server, failures } = await locate({
      extension: this.extension.fsPath,
      setting: vscode.workspace.getConfiguration("warplens").get<string>("server.path", ""),
      searchPath: process.env.PATH ?? "",
    });
    for (const failure of failures) this.log.appendLine(`not used: ${describe(failure)}`);
    if (server === undefined) {
      return this.fail("No warplens program was found that runs here.", failures);
    }
    this.log.appendLine(`using: ${server.origin}: ${server.path} (${server.version})`);

    const client = new WarplensClient(server, this.log, () => this.refreshed.fire(), this.record);
    client.onDidChangeState(({ newState }) => {
      // The client restarts a crashed server by itself, a few times.
      if (this.client !== client) return;
      if (newState === State.Starting) this.become({ kind: "starting" });
      if (newState === State.Running) this.become({ kind: "running", server, failures });
      if (newState === State.Stopped) this.become({ kind: "failed", message: "The server has stopped.", failures });
    });
    try {
      await client.start();
    } catch (error) {
      await client.dispose().catch(() => {});
      return this.fail(`${server.path} did not start: ${text(error)}`, failures);
    }
    this.client = client;
    await vscode.commands.executeCommand("setContext", "warplens.serverCommands", client.serverCommands);
    this.become({ kind: "running", server, failures });
  }

  private async close(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.log.appendLine(`the server did not end in order: ${text(error)}`);
    }
  }

  private fail(message: string, failures: Failure[]): void {
    this.log.appendLine(message);
    this.become({ kind: "failed", message, failures });
    const setPath = "Set the Path…";
    const openLog = "Open the Log";
    void vscode.window.showErrorMessage(`warplens: ${message}`, setPath, openLog).then((choice) => {
      if (choice === setPath) {
        void vscode.commands.executeCommand("workbench.action.openSettings", "warplens.server.path");
      }
      if (choice === openLog) this.log.show();
    });
  }

  private become(phase: Phase): void {
    this.current = phase;
    this.changed.fire(phase);
  }
}

export function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
