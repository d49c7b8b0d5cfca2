// The user's settings in the shape that the server reads: `warplens.toml` in camelCase.

import * as vscode from "vscode";

/** The section's keys that are the server's business; the others concern this extension alone. */
const KEYS = [
  "gpu",
  "compare",
  "model",
  "defines",
  "includePaths",
  "kernelMacros",
  "sharedBankBytes",
  "clock",
  "powerLimit",
  "assume",
  "kernels",
  "rules",
  "preview",
  "inlayHints.enable",
  "inlayHints.memory",
  "inlayHints.shared",
  "inlayHints.divergence",
  "inlayHints.share",
  "inlayHints.instructions",
  "inlayHints.minimumShare",
  "codeLens.enable",
] as const;

/**
 * What names a program to run, or lets the server read beyond the workspace: the user's own value alone counts. VS Code keeps a workspace from setting these
 * (their scope is the machine); here nothing but the user's value is read in any case.
 */
const USERS_OWN = ["compiler", "compilerTimeout", "includesOutsideWorkspace"] as const;

export type Settings = Record<string, unknown>;

/**
 * What the user has set, and nothing else: a default sent along would look like a wish, and win over the
 * project's warplens.toml.
 */
export function explicitSettings(scope?: vscode.Uri): Settings {
  const section = vscode.workspace.getConfiguration("warplens", scope ?? null);
  const settings: Settings = {};
  for (const key of KEYS) {
    const value = section.get<unknown>(key);
    if (value === null || value === undefined || !isSet(section, key)) continue;
    const [outer, inner] = key.split(".") as [string, string?];
    settings[outer] = inner === undefined ? value : { ...(settings[outer] as object | undefined), [inner]: value };
  }
  for (const key of USERS_OWN) {
    const value = section.inspect(key)?.globalValue;
    if (value !== null && value !== undefined && value !== "") settings[key] = value;
  }
  return settings;
}

function isSet(section: vscode.WorkspaceConfiguration, key: string): boolean {
  const where = section.inspect(key);
  if (where === undefined) return false;
  return [
    where.globalValue,
    where.workspaceValue,
    where.workspaceFolderValue,
    where.globalLanguageValue,
    where.workspaceLanguageValue,
    where.workspaceFolderLanguageValue,
  ].some((value) => value !== undefined);
}
