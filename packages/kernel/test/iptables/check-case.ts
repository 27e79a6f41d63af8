import { parseRestore, renderCommand, renderRule, stateCommands } from "@fairlead/netfilter";
import { expect } from "vitest";
import { type IPFamily, type IptablesClient, IptablesError, type Variant } from "../../src/index.ts";
import type { Case, Refused } from "./case.ts";
import { WORDS } from "./words.ts";

/** Runs a case and compares what happened with what it says. */
export async function checkCase(client: IptablesClient, { given, when, refused, after }: Case): Promise<void> {
  const { family, variant } = client;
  if (given !== undefined) await client.restore(inFamily(given, family));
  const before = await dump(client);
  const payload = inFamily(when, family);
  const outcome = await client.restore(payload).then(
    () => undefined,
    (error: unknown) => error,
  );
  const expected = refused && pick(refused, variant);
  if (expected === undefined) expect(outcome).toBeUndefined();
  else checkRefusal(outcome, expected, payload);
  expect(await client.saveTables(["nat", "filter"])).toEqual(
    new Map([
      ["nat", await client.save("nat")],
      ["filter", await client.save("filter")],
    ]),
  );
  for (const table of ["nat", "filter"] as const) await checkTexts(client, table);
  expect(await dump(client)).toEqual(after === undefined ? before : canonical(after, family));
}

/** Chains asked for by name hold what the listing of the table says, also alongside one that is not there. */
async function checkTexts(client: IptablesClient, table: "nat" | "filter"): Promise<void> {
  const { chains } = await client.save(table);
  const asked = [...chains.keys()];
  const reported = new Map([...chains].map(([name, { rules }]) => [name, rules.map(renderRule)]));
  expect(await client.texts(table, asked)).toEqual(reported);
  expect(await client.texts(table, ["NOPE", ...asked])).toEqual(reported);
}

function checkRefusal(outcome: unknown, expected: Refused, payload: string): void {
  expect(outcome).toBeInstanceOf(IptablesError);
  if (!(outcome instanceof IptablesError)) return;
  const { kind, line, text } = outcome;
  const reported = expected.text ?? payload.split("\n")[expected.line - 1];
  expect({ kind, line, text }, outcome.message).toEqual({ kind: expected.kind, line: expected.line, text: reported });
  if (expected.message !== undefined) expect(outcome.message).toMatch(expected.message);
}

function pick(refused: NonNullable<Case["refused"]>, variant: Variant): Refused | undefined {
  return "kind" in refused ? refused : refused[variant];
}

function inFamily(text: string, family: IPFamily): string {
  return text.replace(
    /\$[A-Z]+/g,
    (word) => Object.entries(WORDS[family]).find(([name]) => name === word)?.[1] ?? word,
  );
}

/** Own chains and all rules of nat and filter, `table: line`. */
async function dump(client: IptablesClient): Promise<string[]> {
  const found: string[] = [];
  for (const table of ["filter", "nat"] as const) {
    for (const command of stateCommands(await client.save(table))) {
      if (command.kind === "append") found.push(`${table}: ${renderCommand(command)}`);
      else if (command.kind === "chain" && command.policy === undefined) found.push(`${table}: :${command.chain}`);
    }
  }
  return found;
}

/** The expected lines as the kernel prints them. */
function canonical(lines: readonly string[], family: IPFamily): string[] {
  return lines.map((line) => {
    const [table = "", text = ""] = inFamily(line, family).split(/: (.*)/s);
    if (text.startsWith(":")) return line;
    const [command] = parseRestore(`*${table}\n${text}\nCOMMIT\n`, { family })[0]?.commands ?? [];
    return `${table}: ${command && renderCommand(command)}`;
  });
}
