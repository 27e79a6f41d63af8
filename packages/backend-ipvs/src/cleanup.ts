import { attemptAll, familyOf, nextTurn } from "@fairlead/base";
import {
  type CleanupOptions,
  deleteChains,
  type Links,
  payloadText,
  restoreLines,
  ruleKey,
  type ServerCommand,
  type SetCommand,
  unlinkCommands,
} from "@fairlead/netfilter";
import { ownership, readAddresses, readSets } from "./kernel-state.ts";
import { addressCommand, DELETE_DEVICE, DEVICE } from "./plan/context.ts";
import { CHAINS } from "./plan/frame.ts";
import { type FrameTable, JUMPS, TABLES } from "./plan/frame-nat.ts";
import { setName } from "./plan/sets.ts";
import type { IpvsPort } from "./port.ts";

export interface IpvsCleanupOptions extends CleanupOptions {
  /** ipvs.excludeCIDRs. Default: none. */
  readonly excludeCIDRs?: readonly string[];
}

/**
 * Removes everything that this mode or kube-proxy in it has ever made in one family: rules, virtual servers on our
 * addresses, the addresses, with the last of them the device, and the sets. What belongs to others stays.
 *
 * @throws AggregateError with what failed, after everything was tried
 */
export async function removeIpvsMode(port: IpvsPort, options: IpvsCleanupOptions = {}): Promise<void> {
  const { keep = () => false, excludeCIDRs = [] } = options;
  await attemptAll(
    [
      ...TABLES.map((table) => () => removeRules(port, table, keep)),
      () => removeServers(port, excludeCIDRs),
      () => removeAddresses(port),
      () => removeSets(port),
    ],
    `cleanup of ipvs mode (${port.rules.family}) left something behind`,
  );
}

async function removeRules(
  port: IpvsPort,
  table: FrameTable,
  keep: NonNullable<CleanupOptions["keep"]>,
): Promise<void> {
  const existing = await port.rules.chains(table);
  const chains = CHAINS[table].filter((chain) => existing.has(chain) && !keep(table, chain));
  const jumps = await unlinkCommands(port.rules, links(table, keep));
  const commands = [...jumps, ...deleteChains(chains)];
  if (commands.length > 0) await port.rules.restore(payloadText(restoreLines([{ table, commands }]), nextTurn));
}

/** A jump that another mode has word for word stays with its chain; what only this mode has goes in any case. */
function* links(table: FrameTable, keep: NonNullable<CleanupOptions["keep"]>): Generator<Links> {
  for (const { table: of, chain, rules, shared } of JUMPS) {
    if (of !== table) continue;
    const stay = new Set(
      shared.filter(({ target }) => target?.kind === "jump" && keep(table, target.chain)).map(ruleKey),
    );
    const ours = new Set(rules.map(ruleKey).filter((key) => !stay.has(key)));
    yield { table, chain, isLink: (rule) => ours.has(ruleKey(rule)) };
  }
}

async function removeServers(port: IpvsPort, excludeCIDRs: readonly string[]): Promise<void> {
  const { family } = port.rules;
  const kernel = { sets: await readSets(port, family), addresses: await readAddresses(port, family) };
  const owned = ownership({ family, kernel, made: new Set(), excludeCIDRs });
  const commands: ServerCommand[] = [];
  for await (const server of port.servers.save()) {
    if (owned(server)) commands.push({ kind: "delete-server", server });
  }
  if (commands.length > 0) await port.servers.change(commands, nextTurn);
}

async function removeAddresses({ links, rules }: IpvsPort): Promise<void> {
  const present = await links.addresses(DEVICE);
  if (present === undefined) return;
  const services = [...present].filter((address) => !address.startsWith("fe80:"));
  const ours = services.filter((address) => familyOf(address) === rules.family);
  const commands =
    ours.length === services.length
      ? [DELETE_DEVICE]
      : ours.map((address) => addressCommand("delete-address", address));
  if (commands.length > 0) await links.change(commands, nextTurn);
}

async function removeSets(port: IpvsPort): Promise<void> {
  const { family } = port.rules;
  const present = await readSets(port, family);
  const commands = Array.from(present.keys(), (key): SetCommand => ({ kind: "destroy", set: setName(key, family) }));
  if (commands.length > 0) await port.sets.change(commands, nextTurn);
}
