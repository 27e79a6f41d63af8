import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COMMANDS } from "../src/commands/table.ts";
import { referencePage } from "../src/reference/reference.ts";
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
