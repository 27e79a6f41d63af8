import { parseSetCommand, SetReader, type SetState } from "@fairlead/netfilter";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import { dump } from "../netlink/dump.ts";
import { NetlinkError } from "../netlink/error.ts";
import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import { read } from "../runner/read.ts";
import type { Input, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpsetClient } from "./client.ts";
import { decodeMembers, decodeSet } from "./decode.ts";
import { encodeMember, encodeSetDump, type MemberCommand } from "./messages.ts";

/** Milliseconds one restore may take. */
const RESTORE_TIMEOUT = 600_000;

export interface IpsetOptions {
  /**
   * How netlink is reached in the network namespace of this process, for changes of few members, which then start no
   * process. Where it cannot be had, and by default: `ipset` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of ipset. */
export function createIpset(runner: Runner, { open }: IpsetOptions = {}): IpsetClient {
  const restore = async (input: Input) => {
    await runner.run(["ipset", "-exist", "restore"], { input, timeoutMs: RESTORE_TIMEOUT });
  };
  let missing = open === undefined;
  const opened = async (way: OpenNetlink) => {
    const socket = await way().catch(() => undefined);
    missing = socket === undefined;
    return socket;
  };
  return {
    save: async function* (names) {
      const socket = names === undefined || missing || open === undefined ? undefined : await opened(open);
      if (names !== undefined && socket !== undefined) yield* namedSets(socket, names);
      else yield* chosen(read(lines(runner.stream(["ipset", "save"])), new SetReader()), names);
    },
    restore: async (input) => {
      if (missing || open === undefined) return restore(input);
      const { text, rest } = await beginning(input);
      const commands = rest === undefined ? memberCommands(text) : undefined;
      if (commands === undefined) return restore(joined(text, rest));
      const socket = await opened(open);
      if (socket === undefined) return restore(text);
      try {
        await sendAcknowledged(socket, commands.map(encodeMember), "changing the members of ipsets");
      } finally {
        await socket.close();
      }
    },
  };
}

async function* chosen(sets: AsyncIterable<SetState>, names: Iterable<string> | undefined): AsyncGenerator<SetState> {
  const wanted = names && new Set(names);
  for await (const set of sets) if (wanted === undefined || wanted.has(set.name)) yield set;
}

/** One after the other: there is one dump at a time on a socket, which it closes. */
async function* namedSets(socket: NetlinkSocket, names: Iterable<string>): AsyncGenerator<SetState> {
  try {
    for (const name of names) {
      const set = await dumpSet(socket, name);
      if (set !== undefined) yield set;
    }
  } finally {
    await socket.close();
  }
}

async function dumpSet(socket: NetlinkSocket, name: string): Promise<SetState | undefined> {
  const members = new Set<string>();
  let set: Omit<SetState, "members"> | undefined;
  try {
    await dump(socket, encodeSetDump(name), `reading ipset ${name}`, (bytes, message) => {
      set ??= decodeSet(bytes, message);
      for (const member of decodeMembers(bytes, message)) members.add(member);
    });
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENOENT") return undefined;
    throw error;
  }
  return set && { ...set, members };
}

/** More than this is many. */
const FEW_CHARACTERS = 65_536;

interface Beginning {
  readonly text: string;
  /** Undefined: that was all. */
  readonly rest: AsyncIterator<string> | undefined;
}

async function beginning(input: Input): Promise<Beginning> {
  const pieces = typeof input === "string" ? [input] : input;
  const iterator = (async function* () {
    yield* pieces;
  })();
  let text = "";
  for (;;) {
    const next = await iterator.next();
    if (next.done === true) return { text, rest: undefined };
    text += next.value;
    if (text.length > FEW_CHARACTERS) return { text, rest: iterator };
  }
}

async function* joined(text: string, rest: AsyncIterator<string> | undefined): AsyncGenerator<string, void, void> {
  yield text;
  for (let next = await rest?.next(); next !== undefined && next.done !== true; next = await rest?.next()) {
    yield next.value;
  }
}

/** Undefined where one of them is about something else, or no command. */
function memberCommands(text: string): readonly MemberCommand[] | undefined {
  const commands: MemberCommand[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const command = commandIn(line);
    if (command === undefined || !("member" in command)) return undefined;
    commands.push(command);
  }
  return commands;
}

function commandIn(line: string) {
  try {
    return parseSetCommand(line);
  } catch {
    // The tool says what is wrong with it.
    return undefined;
  }
}
