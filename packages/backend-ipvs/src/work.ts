import {
  type CommandSource,
  payloadText,
  renderServerCommand,
  renderSetCommand,
  restoreLines,
  type ServerCommand,
  type SetCommand,
} from "@fairlead/netfilter";
import type { ResolvedOptions } from "./options.ts";
import { addressCommand, CREATE_DEVICE } from "./plan/device.ts";
import type { IpvsPort } from "./port.ts";

/**
 * Everything that one sync or change writes. There is no transaction over it, nor within most of its steps, so it is
 * carried out in an order of which every beginning serves: what is new is there before anything leads to it, and what
 * goes is led to no more before it does.
 */
export interface Work {
  readonly setsFirst: readonly SetCommand[];
  /** Rules that what follows relies on. */
  readonly rulesFirst: readonly CommandSource[];
  readonly createDevice: boolean;
  readonly addressAdditions: readonly string[];
  /** Servers and destinations that come, then those that go. Read once. */
  readonly servers: Iterable<ServerCommand>;
  readonly addressRemovals: readonly string[];
  /** Rules that rely on what stands before, or are needed no more. */
  readonly rulesLast: readonly CommandSource[];
  readonly setsLast: readonly SetCommand[];
}

/** How many commands were written, by kind of object. */
export interface Written {
  readonly members: number;
  readonly addresses: number;
  readonly servers: number;
  readonly rules: boolean;
}

/**
 * Starts no process for a step that has nothing to do.
 *
 * @throws what the port throws; the steps before the one that failed are done
 */
export async function carryOut(port: IpvsPort, work: Work, { turn }: ResolvedOptions): Promise<Written> {
  const text = (lines: Iterable<string>) => payloadText(lines, turn);
  const members = await changeSets(port, work.setsFirst, text);
  const first = await writeRules(port, work.rulesFirst, text);
  const added = addressLines(work.createDevice, "add", work.addressAdditions);
  if (added.length > 0) await port.links.batch(text(added));
  const servers = await changeServers(port, work.servers, text);
  const removed = addressLines(false, "del", work.addressRemovals);
  if (removed.length > 0) await port.links.batch(text(removed));
  const last = await writeRules(port, work.rulesLast, text);
  const gone = await changeSets(port, work.setsLast, text);
  return {
    members: members + gone,
    addresses: work.addressAdditions.length + work.addressRemovals.length,
    servers,
    rules: first || last,
  };
}

type Text = (lines: Iterable<string>) => AsyncIterable<string>;

async function changeSets({ sets }: IpvsPort, commands: readonly SetCommand[], text: Text): Promise<number> {
  if (commands.length > 0) await sets.restore(text(commands.map(renderSetCommand)));
  return commands.length;
}

async function writeRules({ rules }: IpvsPort, sections: readonly CommandSource[], text: Text): Promise<boolean> {
  if (sections.length > 0) await rules.restore(text(restoreLines(sections)));
  return sections.length > 0;
}

async function changeServers({ servers }: IpvsPort, commands: Iterable<ServerCommand>, text: Text): Promise<number> {
  const iterator = commands[Symbol.iterator]();
  const first = iterator.next();
  if (first.done === true) return 0;
  let count = 0;
  function* lines(): Generator<string> {
    for (let step = first; step.done !== true; step = iterator.next()) {
      count++;
      yield renderServerCommand(step.value);
    }
  }
  await servers.restore(text(lines()));
  return count;
}

function addressLines(createDevice: boolean, change: "add" | "del", addresses: readonly string[]): string[] {
  const lines = addresses.map((address) => addressCommand(change, address));
  return createDevice ? [CREATE_DEVICE, ...lines] : lines;
}
