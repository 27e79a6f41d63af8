import {
  parseRestore,
  renderCommand,
  renderRule,
  stateCommands,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import { expect } from "vitest";
import { type IPFamily, type IptablesClient, IptablesError, type Variant } from "../../src/index.ts";
import { type Case, cases, type Refused } from "./cases.ts";

/**
 * `$HOST`, `$OTHER`: addresses; `$TO`: an address for DNAT; `$WITH`: a reject type; each of the family that is tested.
 */
const WORDS = {
  IPv4: {
    $HOST: "10.96.0.1/32",
    $OTHER: "fd00::1/128",
    $TO: "10.1.0.5",
    $WRONGTO: "[fd00::5]:80",
    $WITH: "icmp-port-unreachable",
    $WRONGWITH: "icmp6-port-unreachable",
  },
  IPv6: {
    $HOST: "fd00::1/128",
    $OTHER: "10.96.0.1/32",
    $TO: "[fd00:1::5]",
    $WRONGTO: "10.1.0.5:80",
    $WITH: "icmp6-port-unreachable",
    $WRONGWITH: "icmp-port-unreachable",
  },
} as const;

/** In the order in which cases list what is there. */
const TABLES = ["filter", "nat"] as const;

type Saved = ReadonlyMap<Table, TableState>;

/**
 * Runs a case in empty tables and compares what happened with what it says. Each look is a process: as few as will do.
 *
 * @param begin restores what is there first; default: the client
 * @param isFake the client blames the line that nft blames, in its own words
 */
export async function checkCase(
  client: IptablesClient,
  { given, when, refused, after }: Case,
  { begin = (text) => client.restore(text), isFake = false }: CheckOptions = {},
): Promise<void> {
  const { family, variant } = client;
  await begin(inFamily(given ?? "", family));
  const isUnchanged = after === undefined && given !== undefined;
  const expectedAfter = isUnchanged ? dump(await client.saveTables(TABLES)) : canonical(after ?? [], family);
  const payload = inFamily(when, family);
  const outcome = await client.restore(payload).then(
    () => undefined,
    (error: unknown) => error,
  );
  const expected = refused && pick(refused, isFake ? "nft" : variant);
  if (expected === undefined) expect(outcome).toBeUndefined();
  else checkRefusal(outcome, isFake ? { ...expected, message: /./ } : expected, payload);
  expect(dump(await client.saveTables(TABLES))).toEqual(expectedAfter);
}

interface CheckOptions {
  readonly begin?: (text: string) => Promise<unknown>;
  readonly isFake?: boolean;
}

/** All tables, one table, chains by their names, also alongside one that is not there: each look says the same. */
export async function checkLooks(client: IptablesClient): Promise<void> {
  const { when = "" } = cases.find(({ name }) => name === "the rules of a service") ?? {};
  await client.restore(inFamily(when, client.family));
  await client.restore("*nat\n:ONE - [0:0]\n:TWO - [0:0]\n-A ONE -j TWO\n-A TWO -j RETURN\nCOMMIT\n");
  await client.restore(inFamily("*filter\n:ONE - [0:0]\n-A FORWARD -d $HOST -g ONE\nCOMMIT\n", client.family));
  for (const [table, state] of await client.saveTables(TABLES)) {
    expect(state).toEqual(await client.save(table));
    expect(await client.texts(table, chainsOf(state))).toEqual(textsOf(state));
    expect(await client.texts(table, ["NOPE", ...chainsOf(state)])).toEqual(textsOf(state));
  }
}

function chainsOf({ chains }: TableState): readonly string[] {
  return [...chains.keys()];
}

function textsOf({ chains }: TableState): ReadonlyMap<string, readonly string[]> {
  return new Map([...chains].map(([name, { rules }]) => [name, rules.map(renderRule)]));
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
function dump(saved: Saved): string[] {
  const found: string[] = [];
  for (const [table, state] of saved) {
    for (const command of stateCommands(state)) {
      if (command.kind === "append") found.push(`${table}: ${renderCommand(command)}`);
      else if (command.kind === "chain" && command.policy === undefined) found.push(`${table}: :${command.chain}`);
    }
  }
  return found;
}

function canonical(lines: readonly string[], family: IPFamily): string[] {
  return lines.map((line) => {
    const [table = "", text = ""] = inFamily(line, family).split(/: (.*)/s);
    if (text.startsWith(":")) return line;
    const [command] = parseRestore(`*${table}\n${text}\nCOMMIT\n`, { family })[0]?.commands ?? [];
    return `${table}: ${command && renderCommand(command)}`;
  });
}
