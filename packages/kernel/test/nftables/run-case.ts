import type { NftFamily, NftTable } from "@fairlead/netfilter/nft";
import { type NftablesClient, NftablesError } from "../../src/index.ts";
import { type Case, Draft } from "./draft.ts";

/** What happened. */
export interface Outcome {
  readonly refused: string | undefined;
  /** Whether a check said the same as the commit, and changed nothing. */
  readonly checked: string | undefined;
  /** By how much the generation rose. */
  readonly generations: number;
  readonly after: readonly string[];
}

const TABLE = "fairlead-test";

/** Runs a case in a table that is there and empty, and takes the table away again. */
export async function runCase(client: NftablesClient, family: NftFamily, { given, when }: Case): Promise<Outcome> {
  const draft = (fill: Case["when"] | undefined) => {
    const batch = new Draft(family, TABLE);
    fill?.(batch);
    return batch;
  };
  const before = draft(undefined).addTable();
  given?.(before);
  await client.commit(before);
  const generation = await client.generation();
  const checked = await refusal(client.check(draft(when)));
  const refused = await refusal(client.commit(draft(when)));
  const generations = (await client.generation()) - generation;
  const table = await client.table(family, TABLE);
  await client.commit(draft(undefined).deleteTable());
  return { refused, checked, generations, after: table === undefined ? ["no table"] : describe(table) };
}

export function expected({ refused, after = [] }: Case): Outcome {
  return { refused, checked: refused, generations: refused === undefined ? 1 : 0, after };
}

async function refusal(work: Promise<void>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (!(error instanceof NftablesError)) throw error;
    const { action, what, name } = error.object ?? { action: "?", what: "?", name: "?" };
    const place =
      { rule: `a rule of chain ${name}`, element: `elements of set ${name}` }[String(what)] ?? `${what} ${name}`;
    return `${error.code}: cannot ${action} ${place}`;
  }
}

function describe({ chains, sets }: NftTable): string[] {
  return [
    ...Array.from(chains.values(), ({ name, rules }) => `chain ${name} ${rules.length}`),
    ...Array.from(sets.values(), ({ name, elements, timeout, size }) =>
      [
        `set ${name} ${elements.size}`,
        ...(timeout ? [`timeout ${timeout}`] : []),
        ...(size ? [`size ${size}`] : []),
      ].join(" "),
    ),
  ];
}
