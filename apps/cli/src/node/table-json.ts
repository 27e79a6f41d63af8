import type { Hex, NftChain, NftFlowtable, NftRule, NftSet, NftTable, SetElement } from "@fairlead/netfilter/nft";

type WireRule = Omit<NftRule, "handle"> & { readonly handle?: string };
type WireChain = Omit<NftChain, "rules"> & { readonly rules: readonly WireRule[] };
type WireSet = Omit<NftSet, "elements"> & { readonly elements: readonly (readonly [Hex, SetElement])[] };
interface WireTable extends Omit<NftTable, "chains" | "sets" | "flowtables"> {
  readonly chains: readonly WireChain[];
  readonly sets: readonly WireSet[];
  readonly flowtables?: readonly NftFlowtable[];
}

/** Tables as one `fairlead` sends them to another. */
export function tablesToJson(tables: readonly NftTable[]): string {
  const wire = tables.map(
    ({ chains, sets, flowtables, ...table }): WireTable => ({
      ...table,
      chains: Array.from(chains.values(), ({ rules, ...chain }) => ({ ...chain, rules: rules.map(ruleToWire) })),
      sets: Array.from(sets.values(), ({ elements, ...set }) => ({ ...set, elements: [...elements] })),
      ...(flowtables && { flowtables: [...flowtables.values()] }),
    }),
  );
  return JSON.stringify(wire);
}

function ruleToWire({ handle, ...rule }: NftRule): WireRule {
  return { ...rule, ...(handle !== undefined && { handle: String(handle) }) };
}

/**
 * The tables that another `fairlead` sent.
 *
 * @throws SyntaxError for what is no JSON
 */
export function tablesFromJson(text: string): readonly NftTable[] {
  const wire: readonly WireTable[] = JSON.parse(text);
  return wire.map(({ chains, sets, flowtables, ...table }) => ({
    ...table,
    chains: new Map(chains.map(({ rules, ...chain }) => [chain.name, { ...chain, rules: rules.map(ruleFromWire) }])),
    sets: new Map(sets.map(({ elements, ...set }) => [set.name, { ...set, elements: new Map(elements) }])),
    ...(flowtables && { flowtables: new Map(flowtables.map((one) => [one.name, one])) }),
  }));
}

function ruleFromWire({ handle, ...rule }: WireRule): NftRule {
  return { ...rule, ...(handle !== undefined && { handle: BigInt(handle) }) };
}
