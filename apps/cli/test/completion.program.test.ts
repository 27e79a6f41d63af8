import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "../src/commands/table.ts";
import { COMPLETER, completionsOf, kubectlCompletion } from "../src/frame/completion.ts";
import { ownFolder } from "./support/files.ts";

import { fairlead } from "./support/run.ts";

/** A folder with a file in it, where the shell stands. */
const dir = ownFolder();
beforeAll(async () => {
  await writeFile(join(dir, "services.yaml"), "");
  for (const shell of ["bash", "zsh", "fish"]) await writeFile(join(dir, `script.${shell}`), await scriptOf(shell));
});

async function scriptOf(shell: string): Promise<string> {
  const { code, out } = await fairlead(["completion", shell]);
  expect(code).toBe(0);
  return out;
}

/** Undefined: the shell is not installed here. */
async function shell(program: string, ...args: string[]): Promise<string | undefined> {
  try {
    return (await createRunner({ timeoutMs: 0 }).run([program, ...args])).stdout;
  } catch (error) {
    if (error instanceof CommandError && error.reason === "not-found") return undefined;
    throw error;
  }
}

const installed = new Map<string, boolean>();
for (const program of ["zsh", "fish"]) installed.set(program, (await shell(program, "-c", "true")) !== undefined);

type Offer = (words: readonly string[]) => Promise<readonly string[]>;

const inBash: Offer = async (words) => {
  const set = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))`;
  const text = `compopt() { :; }; cd "$1"; source script.bash; shift; ${set}; _fairlead; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = await shell("bash", "-c", text, "bash", dir, ...words);
  return (out ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .sort();
};

const inFish: Offer = async (words) => {
  const text = `cd $argv[1]; source script.fish; complete -C (string join -- ' ' $argv[2..])`;
  const out = await shell("fish", "--no-config", "-c", text, dir, ...words);
  return (out ?? "")
    .split("\n")
    .flatMap((line) => line.split("\t", 1))
    .filter((line) => line !== "")
    .sort();
};

/** kubectl offers the shell's files where there are no words and the directive allows them. */
const inKubectl: Offer = async ([, ...typed]) => {
  const lines = kubectlCompletion(completionsOf(COMMANDS), typed).trimEnd().split("\n");
  const words = lines.slice(0, -1).flatMap((line) => line.split("\t", 1));
  const files = words.length === 0 && lines.at(-1) === ":0" ? await readdir(dir) : [];
  return [...words, ...files.filter((file) => file.startsWith(typed.at(-1) ?? ""))].sort();
};

const shells: readonly (readonly [string, Offer])[] = [
  ["bash", inBash],
  ["kubectl", inKubectl],
  ...(installed.get("fish") ? ([["fish", inFish]] as const) : []),
];

describe.each(shells)("%s", (_shell, offer) => {
  test("commands", async () => {
    expect(await offer(["fairlead", ""])).toEqual(expect.arrayContaining(COMMANDS.map(({ name }) => name)));
    expect(await offer(["fairlead", "expl"])).toEqual(["explain"]);
  });

  test("every option of every command", async () => {
    for (const { name, options } of COMMANDS) {
      const wanted = [...Object.keys(options), "help"].map((option) => `--${option}`).sort();
      expect(await offer(["fairlead", name, "--"]), name).toEqual(wanted);
    }
  });

  test("values: words, files, and nothing where values are unknown", async () => {
    expect(await offer(["fairlead", "plan", "--output", ""])).toEqual(["json", "rules", "summary", "yaml"]);
    expect(await offer(["fairlead", "plan", "-o", "su"])).toEqual(["summary"]);
    expect(await offer(["fairlead", "plan", "--file", "serv"])).toEqual(["services.yaml"]);
    expect(await offer(["fairlead", "completion", "z"])).toEqual(["zsh"]);
  });
});

test("kubectl: --name=value is one word, and other commands get no values", async () => {
  expect(await inKubectl(["fairlead", "plan", "--output=js"])).toEqual(["--output=json"]);
  expect(await inKubectl(["fairlead", "get", ""])).toEqual([]);
});

test(`kubectl asks ${COMPLETER} on PATH`, async ({ skip }) => {
  const plugins = join(dir, "plugins");
  await mkdir(plugins);
  for (const name of ["kubectl-fairlead", COMPLETER]) {
    await symlink(join(import.meta.dirname, "..", "dist", "main.js"), join(plugins, name));
  }
  const env = `${plugins}:${dirname(process.execPath)}:/usr/bin:/bin`;
  const said = await shell("env", `PATH=${env}`, "sh", "-c", "kubectl __complete fairlead plan -o '' || true");
  if (said === "") skip("there is no kubectl of 1.26 or newer here");
  expect(said?.split("\n").flatMap((line) => line.split("\t", 1))).toEqual(
    expect.arrayContaining(["rules", "json", "summary"]),
  );
});

test("bash: --name=value is three words", async () => {
  expect(await inBash(["fairlead", "plan", "--output", "="])).toEqual(["json", "rules", "summary", "yaml"]);
  expect(await inBash(["fairlead", "plan", "--output", "=", "js"])).toEqual(["json"]);
});

test.skipIf(!installed.get("zsh"))("zsh: the script is one, and names every command and option", async () => {
  await shell(
    "zsh",
    "--no-rcs",
    "-c",
    `autoload -U compinit; compinit -D; source ${join(dir, "script.zsh")}; whence _fairlead`,
  );
  const script = await scriptOf("zsh");
  for (const { name, options } of COMMANDS) {
    expect(script).toContain(`'${name}:`);
    for (const option of Object.keys(options)) expect(script).toContain(`--${option}`);
  }
});

test("another shell is a usage error", async () => {
  const { code, err } = await fairlead(["completion", "tcsh"]);
  expect(err).toMatch(/"tcsh": must be bash, zsh, fish/);
  expect(code).toBe(2);
});
