import { renderLinkCommand } from "@fairlead/netfilter";
import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import { CommandError } from "../runner/command-error.ts";
import { runCommands } from "../runner/commands.ts";
import type { Runner } from "../runner/runner.ts";
import type { LinksClient } from "./client.ts";
import { changeLinks, readAddresses } from "./session.ts";

/** Characters that a listing of a hundred thousand addresses stays below. */
const MAX_LISTING = 64 * 1024 * 1024;

/** How devices and their addresses are reached. */
export interface LinksOptions {
  /**
   * How rtnetlink is reached, in the network namespace that the runner runs its processes in; nothing then starts a
   * process.
   * Where it cannot be had, and by default: `ip` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of devices: by netlink, else by iproute2. */
export function createLinks(runner: Runner, { open }: LinksOptions = {}): LinksClient {
  const opened = async () => open?.().catch(() => undefined);
  return {
    addresses: async (device) => {
      const socket = await opened();
      return socket === undefined ? listed(runner, device) : closing(socket, readAddresses(socket, device));
    },
    change: async (commands, turn) => {
      const socket = await opened();
      if (socket !== undefined) return closing(socket, changeLinks(socket, commands, turn));
      await runCommands(runner, ["ip", "-batch", "-"], commands, renderLinkCommand, turn);
    },
  };
}

function closing<Result>(socket: NetlinkSocket, work: Promise<Result>): Promise<Result> {
  return work.finally(() => socket.close());
}

async function listed(runner: Runner, device: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const options = { maxStdout: MAX_LISTING };
    const { stdout } = await runner.run(["ip", "-oneline", "address", "show", "dev", device], options);
    return new Set(Array.from(stdout.matchAll(LOCAL), ([, address = ""]) => address));
  } catch (error) {
    if (error instanceof CommandError && error.stderr.includes("does not exist")) return undefined;
    throw error;
  }
}

/** `3: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\       valid_lft forever …` */
const LOCAL = /^\d+: \S+ +inet6? ([0-9a-f.:]+)/gm;
