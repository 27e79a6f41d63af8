import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import { CommandError } from "../runner/command-error.ts";
import type { Input, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { LinksClient } from "./client.ts";
import { changeLinks, readAddresses } from "./session.ts";

/** Milliseconds one batch may take. */
const BATCH_TIMEOUT = 600_000;

/** Characters that a listing of a hundred thousand addresses stays below. */
const MAX_LISTING = 64 * 1024 * 1024;

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
    batch: async (input) => {
      const socket = await opened();
      if (socket === undefined) await runner.run(["ip", "-batch", "-"], { input, timeoutMs: BATCH_TIMEOUT });
      else await closing(socket, changeLinks(socket, lines(pieces(input))));
    },
  };
}

function closing<Result>(socket: NetlinkSocket, work: Promise<Result>): Promise<Result> {
  return work.finally(() => socket.close());
}

async function* pieces(input: Input): AsyncGenerator<string, void, void> {
  yield* typeof input === "string" ? [input] : input;
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
