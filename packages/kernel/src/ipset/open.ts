import { parseSetCommand, SetReader } from "@fairlead/netfilter";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import type { OpenNetlink } from "../netlink/socket.ts";
import { read } from "../runner/read.ts";
import type { Input, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpsetClient } from "./client.ts";
import { encodeMember, type MemberCommand } from "./messages.ts";

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
  return {
    save: () => read(lines(runner.stream(["ipset", "save"])), new SetReader()),
    restore: async (input) => {
      if (missing || open === undefined) return restore(input);
      const { text, rest } = await beginning(input);
      const commands = rest === undefined ? memberCommands(text) : undefined;
      if (commands === undefined) return restore(joined(text, rest));
      const socket = await open().catch(() => undefined);
      missing = socket === undefined;
      if (socket === undefined) return restore(text);
      try {
        await sendAcknowledged(socket, commands.map(encodeMember), "changing the members of ipsets");
      } finally {
        await socket.close();
      }
    },
  };
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
