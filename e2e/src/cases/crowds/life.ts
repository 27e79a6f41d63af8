import { type CrowdGround, FollowedCrowd, type Met } from "./followed-crowd.ts";

const HOUR = 3600;
const FIVE = [0, 1, 2, 3, 4] as const;
const TEN = [...FIVE, 5, 6, 7, 8, 9] as const;

export interface LivedThrough {
  readonly met: readonly Met[];
  /** Clients of 200 that came to more than one endpoint with the first connections, begun at once. */
  readonly split: { readonly IPv4: number; readonly IPv6: number };
}

export interface LifeOptions {
  readonly restart: () => Promise<void>;
  /** Whether an endpoint is known of as many clients as there are: a list of xt_recent holds 100. */
  readonly remembersAll: boolean;
  /** Whether node port and ClusterIP lead a client to the same endpoint. */
  readonly sharesFrontends: boolean;
  /** Each step; else those that find most. */
  readonly whole: boolean;
}

/**
 * A service with 200 clients in each family is scaled, updated and replaced, and the proxy restarts; after each step
 * all clients connect.
 */
export async function crowdLife(ground: CrowdGround, options: LifeOptions): Promise<LivedThrough> {
  const crowd = new FollowedCrowd(ground, { name: "crowd", number: 1, seconds: 3 * HOUR, endpoints: FIVE });
  await crowd.change({});
  await crowd.connect("at first");
  if (options.sharesFrontends) await crowd.connect("by the node port", { by: "node-port" });
  await update(crowd, options);
  await crowd.change({ seconds: HOUR });
  await options.restart();
  await crowd.connect("another timeout, and the proxy has restarted");
  await scale(crowd, options);
  // Where clients are remembered by address and port, they are those of whatever service has these.
  await crowd.replace("other", { inherits: !options.sharesFrontends });
  await crowd.connect("another service has the addresses");
  const fresh = new FollowedCrowd(ground, { name: "at-once", number: 2, seconds: HOUR, endpoints: TEN });
  await fresh.change({});
  const split = await fresh.connectAtOnce(8);
  await fresh.connect("after connections at once");
  return { met: [...crowd.met, ...fresh.met], split };
}

async function update(crowd: FollowedCrowd, { whole }: LifeOptions): Promise<void> {
  if (whole) {
    await crowd.change({ endpoints: [...FIVE, 5] });
    await crowd.connect("an endpoint comes");
    await crowd.change({ endpoints: FIVE });
    await crowd.connect("it goes");
  }
  for (const at of whole ? FIVE : FIVE.slice(0, 1)) {
    await crowd.change({ endpoints: [...FIVE.slice(at + 1), ...TEN.slice(5, 6 + at)] });
    await crowd.connect(`rolling update, ${at + 1} of 5`);
  }
}

async function scale(crowd: FollowedCrowd, { whole, remembersAll }: LifeOptions): Promise<void> {
  await crowd.change({ endpoints: [9] });
  await crowd.connect("scaled to 1");
  if (whole) {
    await crowd.change({ endpoints: [8, 9] });
    await crowd.connect("scaled to 2", { moves: remembersAll ? "forbidden" : "counted" });
  }
  await crowd.change({ endpoints: [] });
  // The kernel bounds how many refusals it sends in a second: clients wait for theirs.
  if (whole) await crowd.connect("scaled to 0");
  await crowd.change({ endpoints: TEN });
  await crowd.connect("scaled to 10");
}
