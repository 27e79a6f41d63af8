import { renderSetCommand, type SetCommand, SetReader, type SetState } from "@fairlead/netfilter";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import { NetlinkError } from "../netlink/error.ts";
import { list } from "../netlink/list.ts";
import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import { runCommands } from "../runner/commands.ts";
import { read } from "../runner/read.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpsetClient } from "./client.ts";
import { decodeMembers, decodeSet } from "./decode.ts";
import { encodeMember, encodeSetDump, type MemberCommand } from "./messages.ts";

/** Up to so many members go by netlink, one message each; the tool puts more of them into one. */
const FEW = 2_000;

/** How ipsets are reached. */
export interface IpsetOptions {
  /**
   * How netlink is reached in the network namespace of this process, for changes of few members, which then start no
   * process. Where it cannot be had, and by default: `ipset` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of ipset. */
export function createIpset(runner: Runner, { open }: IpsetOptions = {}): IpsetClient {
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
    change: async (commands, turn) => {
      const members = missing || open === undefined ? undefined : fewMembers(commands);
      const socket = members && open && (await opened(open));
      if (members === undefined || socket === undefined) {
        await runCommands(runner, ["ipset", "-exist", "restore"], commands, renderSetCommand, turn);
        return;
      }
      try {
        await sendAcknowledged(socket, members.map(encodeMember), "changing the members of ipsets");
      } finally {
        await socket.close();
      }
    },
  };
}

/** The commands where they are few, and all of them about members. */
function fewMembers(commands: readonly SetCommand[]): readonly MemberCommand[] | undefined {
  if (commands.length > FEW) return undefined;
  const members = commands.filter((command) => "member" in command);
  return members.length === commands.length ? members : undefined;
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
  try {
    let set: Omit<SetState, "members"> | undefined;
    const members = await list(socket, encodeSetDump(name), `reading ipset ${name}`, (bytes, message) => {
      set ??= decodeSet(bytes, message);
      return [...decodeMembers(bytes, message)];
    });
    return set && { ...set, members: new Set(members) };
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENOENT") return undefined;
    throw error;
  }
}
