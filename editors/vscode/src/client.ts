// The language client, with the few things that differ from a plain one.

import { withRunLink } from "./commands/setRun";
import * as vscode from "vscode";
import {
  type ClientCapabilities,
  CodeLensRefreshRequest,
  type ConfigurationItem,
  DidChangeConfigurationNotification,
  type DynamicFeature,
  ExecuteCommandRequest,
  type FeatureState,
  LanguageClient,
  RevealOutputChannelOn,
  type StaticFeature,
  type WorkspaceEdit,
} from "vscode-languageclient/node";
import { selector } from "./documents";
import type { Server } from "./locate";
import { explicitSettings } from "./settings";

/** Commands that a code lens or a code action of the server may name: all of them are registered here. */
const LENS_COMMANDS = [
  "warplens.selectGpu",
  "warplens.setLaunch",
  "warplens.setRun",
  "warplens.nextLaunch",
  "warplens.pin",
  "warplens.breakdown",
  "warplens.compareGpus",
  "warplens.report",
  "warplens.program",
  "warplens.graph",
  "warplens.estimate",
  "warplens.whatWouldHelp",
  "warplens.lanes",
];

/**
 * The server executes commands of the same ids that the palette shows. The stock client would register each of
 * them a second time, which VS Code refuses and which ends the start. Here the palette's commands ask the user for
 * what is missing and then call the server's.
 */
export class WarplensClient extends LanguageClient {
  /**
   * `onRefresh` is called when the server says that what it predicted has changed, for whatever reason. With `record` the
   * server keeps what it is told in that file.
   */
  constructor(server: Server, log: vscode.OutputChannel, onRefresh: () => void, record: string | undefined) {
    // The id is also the settings section in which the client looks for `trace.server`.
    super(
      "warplens",
      "warplens",
      { command: server.path, args: record === undefined ? ["lsp"] : ["lsp", "--record", record] },
      {
        documentSelector: selector,
        outputChannel: log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        // No initializationOptions: the server asks for the settings as soon as it is up.
        middleware: {
          provideHover: async (document, position, token, next) => withRunLink(await next(document, position, token)),
        },
        connectionOptions: {
          messageStrategy: {
            handleMessage: (message, next) => {
              next(message);
              if ("method" in message && message.method === CodeLensRefreshRequest.method) onRefresh();
            },
          },
        },
      },
    );
    this.middleware.workspace = {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        return Array.isArray(answers) ? answers.map((answer, i) => own(params.items[i]) ?? answer) : answers;
      },
      // The server asks to be told, and then asks for the settings above.
      didChangeConfiguration: () =>
        this.sendNotification(DidChangeConfigurationNotification.type, { settings: { warplens: explicitSettings() } }),
    };
    this.registerFeature(new CommandsStayHere());
  }

  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : undefined;
    if (method !== ExecuteCommandRequest.method) super.registerFeature(feature);
  }

  /** A server that ended as it should is no error in the log. */
  override error(message: string, data?: unknown, showNotification?: boolean | "force"): void {
    if (message === "Server process exited with code 0.") this.info("The server has ended.", data, false);
    else super.error(message, data, showNotification);
  }

  /** The commands that the server says it executes. */
  get serverCommands(): string[] {
    return this.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
  }

  /** Calls one of the server's commands; its arguments are one object. */
  async execute<T>(command: string, argument: object): Promise<T> {
    return (await this.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] })) as T;
  }

  /** Makes an edit that the server gave; false where it is about an older text. */
  async apply(edit: WorkspaceEdit): Promise<boolean> {
    for (const change of edit.documentChanges ?? []) {
      if (!("textDocument" in change)) continue;
      const { uri, version } = change.textDocument;
      const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === vscode.Uri.parse(uri).toString());
      if (version !== null && open !== undefined && open.version !== version) return false;
    }
    return vscode.workspace.applyEdit(await this.protocol2CodeConverter.asWorkspaceEdit(edit));
  }
}

/** Our answer to one item of `workspace/configuration`; none where the item is not about us. */
function own(item: ConfigurationItem | undefined): object | undefined {
  if (item?.section !== "warplens") return undefined;
  return explicitSettings(item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri));
}

/** Says what the left-out feature would have said, which commands lenses may use, and that hovers show diagnostics beside ours. */
class CommandsStayHere implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.workspace = { ...capabilities.workspace, executeCommand: { dynamicRegistration: false } };
    capabilities.experimental = {
      ...(capabilities.experimental as object | undefined),
      commands: { commands: LENS_COMMANDS },
      hoverShowsDiagnostics: true,
    };
  }

  initialize(): void {}

  getState(): FeatureState {
    return { kind: "static" };
  }

  clear(): void {}
}
