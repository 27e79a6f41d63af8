import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { COMMANDS } from "../src/commands/table.ts";
import { referencePage } from "../src/reference.ts";
import { ownFolder } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

test("docs/cli.md is what `pnpm --filter @fairlead/cli run reference` writes", async () => {
  const page = await readFile(join(import.meta.dirname, "..", "..", "..", "docs", "cli.md"), "utf8");
  expect(page).toBe(referencePage(COMMANDS));
});

test("every command has run as readers with narrow rights (e2e/rights.json)", async () => {
  const file = join(import.meta.dirname, "..", "..", "..", "e2e", "rights.json");
  const outcomes: readonly { readonly command: string }[] = JSON.parse(await readFile(file, "utf8"));
  expect([...new Set(outcomes.map(({ command }) => command))]).toEqual(COMMANDS.map(({ name }) => name));
});

test.each(COMMANDS)(
  "fairlead $name --help: every option, argument and example",
  async ({ name, arguments: args, options, examples }) => {
    const { code, out } = await fairlead([name, "--help"]);
    expect(code).toBe(0);
    for (const option of Object.keys(options)) expect(out).toContain(`--${option}`);
    for (const argument of args) expect(out).toContain(argument.name);
    for (const { line } of examples) expect(out).toContain(line);
    expect(examples.length).toBeGreaterThan(0);
  },
);

test.each(COMMANDS)("the examples of fairlead $name are command lines that it knows", ({ name, options, examples }) => {
  for (const { line } of examples) {
    const words = line.split(/[\s()]+/);
    const own = words.slice(words.indexOf("fairlead") + 1);
    expect(own[0], line).toBe(name);
    for (const word of own.filter((one) => one.startsWith("--"))) {
      expect(Object.keys(options), line).toContain(word.slice(2).split("=", 1)[0]);
    }
  }
});

const page = await readFile(join(import.meta.dirname, "..", "..", "..", "docs", "tools.md"), "utf8");

const dir = ownFolder();
beforeAll(async () => {
  const manifests = /^```yaml\n(.*?)^```/ms.exec(page)?.[1] ?? "";
  await writeFile(join(dir, "services.yaml"), manifests);
});

/** Files of the page lie in a folder of the test's own. */
const inFolder = (word: string) => (/^[\w-]+\.(?:yaml|txt)$/.test(word) ? join(dir, word) : word);

async function run({ words, into }: Example): Promise<string> {
  const { out, err } = await fairlead(words.map(inFolder));
  if (into === undefined) return err + out;
  await writeFile(inFolder(into), out);
  return err;
}

// One after the other: later ones read what earlier ones wrote.
test.each(examplesOf(page))("$line", async (example) => {
  expect(await run(example)).toBe(example.output);
});

test("the page has examples", () => {
  expect(examplesOf(page).length).toBeGreaterThan(5);
});

/** A command of a page's console block, with what it says that it prints. */
interface Example {
  readonly line: string;
  /** The arguments, without `fairlead` itself. */
  readonly words: readonly string[];
  /** The file that its output goes into. */
  readonly into?: string;
  readonly output: string;
}

function examplesOf(page: string): readonly Example[] {
  const blocks = [...page.matchAll(/^```console\n(.*?)^```/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.split(/^\$ /m).slice(1).map(exampleOf));
}

function exampleOf(text: string): Example {
  const end = text.indexOf("\n");
  const line = text.slice(0, end);
  const [command = "", into] = line.split(" > ");
  const words = command.split(" ").slice(1);
  return { line, words, ...(into === undefined ? {} : { into }), output: text.slice(end + 1) };
}
