// Which warplens program to run. Knows nothing of VS Code, so that it can be tested by itself.

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

/** Where a program was looked for. */
export type Origin = "bundled" | "setting" | "PATH";

/** A program that answered `--version` as warplens does. */
export interface Server {
  origin: Origin;
  path: string;
  /** What it calls itself, `warplens 0.1.0`. */
  version: string;
}

/** A place that had no usable program. */
export interface Failure {
  origin: Origin;
  /** The file that was tried; none where there was nothing to try. */
  path?: string;
  reason: string;
}

export interface Places {
  /** The extension's own folder. */
  extension: string;
  /** The value of `warplens.server.path`; empty where it is not set. */
  setting: string;
  /** The value of the environment variable PATH. */
  searchPath: string;
  home?: string;
  windows?: boolean;
}

/** How long a program may take to say its version. */
const PATIENCE_MS = 10_000;

/** Tries the extension's own program, the setting's, the first on PATH; the first that runs is used. */
export async function locate(places: Places): Promise<{ server?: Server; failures: Failure[] }> {
  const failures: Failure[] = [];
  for (const candidate of await candidates(places)) {
    if (candidate.path === undefined || candidate.reason !== undefined) {
      failures.push({ ...candidate, reason: candidate.reason ?? "nothing to try" });
      continue;
    }
    const answer = await version(candidate.path);
    if ("version" in answer) {
      return { server: { origin: candidate.origin, path: candidate.path, version: answer.version }, failures };
    }
    failures.push({ origin: candidate.origin, path: candidate.path, reason: answer.reason });
  }
  return { failures };
}

/** One line for the log and the tooltip. */
export function describe(failure: Failure): string {
  const name = failure.origin === "setting" ? "warplens.server.path" : failure.origin;
  return failure.path === undefined ? `${name}: ${failure.reason}` : `${name}: ${failure.path}: ${failure.reason}`;
}

interface Candidate {
  origin: Origin;
  path?: string;
  reason?: string;
}

async function candidates(places: Places): Promise<Candidate[]> {
  const windows = places.windows ?? process.platform === "win32";
  const program = windows ? "warplens.exe" : "warplens";
  return [
    { origin: "bundled", path: path.join(places.extension, "server", program) },
    fromSetting(places.setting, places.home ?? homedir()),
    await fromPath(places.searchPath, program, windows),
  ];
}

function fromSetting(setting: string, home: string): Candidate {
  const value = setting.trim();
  if (value === "") return { origin: "setting", reason: "not set" };
  const expanded = value === "~" || /^~[\\/]/.test(value) ? path.join(home, value.slice(1)) : value;
  if (!path.isAbsolute(expanded)) return { origin: "setting", path: value, reason: "not an absolute path" };
  return { origin: "setting", path: expanded };
}

async function fromPath(searchPath: string, program: string, windows: boolean): Promise<Candidate> {
  for (const folder of searchPath.split(windows ? ";" : ":")) {
    // A relative entry would mean the folder VS Code happens to run in.
    if (!path.isAbsolute(folder)) continue;
    const file = path.join(folder, program);
    try {
      await access(file, constants.X_OK);
      return { origin: "PATH", path: file };
    } catch {
      // Not in this folder.
    }
  }
  return { origin: "PATH", reason: `no folder of it has ${program}` };
}

function version(file: string): Promise<{ version: string } | { reason: string }> {
  return new Promise((resolve) => {
    execFile(file, ["--version"], { timeout: PATIENCE_MS, windowsHide: true }, (error, stdout, stderr) => {
      const said = firstLine(stdout);
      if (error) resolve({ reason: why(error, firstLine(stderr)) });
      else if (/^warplens\s+\d/.test(said)) resolve({ version: said });
      else resolve({ reason: `answered ${said === "" ? "nothing" : `"${said}"`} to --version, so it is not warplens` });
    });
  });
}

function why(error: Error & { code?: string | number | null; killed?: boolean; signal?: NodeJS.Signals | null }, said: string): string {
  if (error.killed) return `no answer to --version within ${PATIENCE_MS / 1000} s`;
  switch (error.code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
      return "it may not be run (permission denied)";
    case "ENOEXEC":
      return "it is not a program for this machine";
  }
  if (error.signal) return `it was ended by ${error.signal}`;
  if (typeof error.code === "number") return `exit status ${error.code}${said === "" ? "" : `: ${said}`}`;
  return error.message;
}

function firstLine(text: string): string {
  return text.trim().split(/\r?\n/)[0]?.slice(0, 200) ?? "";
}
