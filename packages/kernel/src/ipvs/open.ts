import type { OpenNetlink } from "../netlink/socket.ts";
import type { Runner } from "../runner/runner.ts";
import type { IpvsadmClient } from "./client.ts";
import { type IpvsSession, openIpvsSession } from "./session.ts";
import { createIpvsadmTool } from "./tool.ts";

/** How virtual servers are reached. */
export interface IpvsadmOptions {
  /**
   * How generic netlink is reached, in the network namespace that the runner runs its processes in; nothing then starts
   * a process but `setTimeouts`. Where it cannot be had, and by default: `ipvsadm` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of IPVS: by netlink, else by ipvsadm. */
export function createIpvsadm(runner: Runner, { open }: IpvsadmOptions = {}): IpvsadmClient {
  const tool = createIpvsadmTool(runner);
  if (open === undefined) return tool;
  // The module may come and go: the tool loads it, or says what is missing.
  const session = () => openIpvsSession(open).catch(() => undefined);
  return {
    save: () => read(session, ({ servers }) => servers(), tool.save),
    connections: (servers) =>
      read(
        session,
        (own) => own.connections(servers),
        () => tool.connections(servers),
      ),
    change: async (commands, turn) => {
      const own = await session();
      if (own === undefined) return tool.change(commands, turn);
      await own.change(commands, turn).finally(own.close);
    },
    setTimeouts: tool.setTimeouts,
  };
}

async function* read<Item>(
  open: () => Promise<IpvsSession | undefined>,
  byNetlink: (session: IpvsSession) => AsyncIterable<Item>,
  byTool: () => AsyncIterable<Item>,
): AsyncGenerator<Item, void, void> {
  const session = await open();
  try {
    yield* session === undefined ? byTool() : byNetlink(session);
  } finally {
    await session?.close();
  }
}
