// What package.json promises is there: commands, settings that the code reads, files that it names.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

// Tests are run from the extension's folder.
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const schema = JSON.parse(readFileSync("../../docs/schemas/config.schema.json", "utf8"));
const source = (file: string) => readFileSync(`src/${file}`, "utf8");
const commands: string[] = manifest.contributes.commands.map(({ command }: { command: string }) => command);
const settings: Record<string, { default?: unknown }> = Object.assign(
  {},
  ...manifest.contributes.configuration.map(({ properties }: { properties: object }) => properties),
);

test("every command of the palette is registered, and every registered one is in the palette", () => {
  const registered = [...source("extension.ts").matchAll(/^ {2}command\("(\w+)"/gm)].map(([, name]) => `warplens.${name}`);
  assert.deepEqual([...registered].sort(), [...commands].sort());
});

test("menus, walkthrough and links name commands that exist", () => {
  const text = JSON.stringify(manifest);
  const named = [...text.matchAll(/command:(warplens\.\w+)/g), ...text.matchAll(/onCommand:(warplens\.\w+)/g)].map(([, name]) => name);
  assert.ok(named.length > 5);
  for (const name of named) assert.ok(commands.includes(name!), name);
  const menus = Object.values(manifest.contributes.menus).flat() as { command: string }[];
  for (const { command } of menus) assert.ok(commands.includes(command), command);
});

test("files that it names are there", () => {
  const named: string[] = [
    manifest.icon,
    ...manifest.contributes.languages.map(({ configuration }: { configuration: string }) => configuration),
    ...manifest.contributes.grammars.map(({ path }: { path: string }) => path),
    ...manifest.contributes.walkthroughs.flatMap(({ steps }: { steps: { media: { image: string } }[] }) =>
      steps.map(({ media }) => media.image),
    ),
    "walkthrough/sample.cu",
    ...[1, 2, 3, 4, 5].map((degree) => `images/heat-${degree}.svg`),
  ];
  for (const file of named) assert.ok(existsSync(file), file);
});

test("the walkthrough has three steps, each with what completes it", () => {
  const [walkthrough] = manifest.contributes.walkthroughs;
  assert.equal(walkthrough.steps.length, 3);
  for (const step of walkthrough.steps) assert.ok(step.completionEvents.length > 0, step.id);
});

test("settings of the server are those of warplens.toml, and are sent", () => {
  const own = ["server", "trace", "compiler", "compilerTimeout", "includesOutsideWorkspace", "detectGpu", "heatMap"];
  const keys = /const KEYS = \[([^\]]*)\]/.exec(source("settings.ts"))?.[1] ?? "";
  for (const name of Object.keys(settings)) {
    const [, key, inner] = name.split(".");
    if (own.includes(key!)) continue;
    const known = schema.properties[key!];
    assert.ok(known, name);
    if (inner !== undefined) {
      const definition = schema.$defs[String(known.$ref ?? known.allOf?.[0]?.$ref).split("/").at(-1)!];
      assert.ok(definition.properties[inner], name);
    }
    assert.ok(keys.includes(`"${name.slice("warplens.".length)}"`), name);
  }
});

test("a folder that is not trusted cannot name a program", () => {
  const { untrustedWorkspaces } = manifest.capabilities;
  assert.equal(untrustedWorkspaces.supported, "limited");
  const programs = Object.keys(settings).filter((name) => /path|compiler/i.test(name) && name !== "warplens.includePaths");
  for (const name of programs) assert.ok(untrustedWorkspaces.restrictedConfigurations.includes(name), name);
  assert.deepEqual(manifest.extensionKind, ["workspace"]);
});

test("the book's pictures are those that the tests take for the README", () => {
  const folder = "../../docs/editors/images";
  const pictures = readdirSync(folder).filter((name) => name.startsWith("vscode-"));
  assert.ok(pictures.length > 0);
  for (const name of pictures) {
    assert.ok(readFileSync(`${folder}/${name}`).equals(readFileSync(`images/${name.slice("vscode-".length)}`)), name);
  }
});
