import { DEVICE } from "@fairlead/backend-ipvs";
import type { IpvsObjects } from "@fairlead/inspect";
import {
  createIpset,
  createIpvsadm,
  createLinks,
  createNodeAddresses,
  type IPFamily,
  type Runner,
} from "@fairlead/kernel";
import type { SetState } from "@fairlead/netfilter";
import {
  type Environment,
  type Ipvs,
  type PacketSet,
  packetSet,
  parseRecentList,
  parseRoutes,
  type RecentLists,
  routing,
  ticksPerSecond,
} from "@fairlead/trace";
import { collect } from "./collect.ts";

/**
 * What this host knows alongside its rules, as packets meet it. What cannot be read is left out, and then it cannot be
 * told.
 */
export async function liveEnvironment(runner: Runner, family: IPFamily): Promise<Environment> {
  const host = await hostEnvironment(runner, family);
  const objects = await readIpvsObjects(runner);
  const settings = objects.servers.length === 0 ? undefined : await ipvsSettings(runner);
  return { ...ipvsEnvironment(host, objects, settings), recent: await readRecent(runner) };
}

/** The host's own addresses and routes. */
export async function hostEnvironment(runner: Runner, family: IPFamily): Promise<Environment> {
  const addresses = await createNodeAddresses(runner).list();
  const own = addresses.filter((one) => one.family === family);
  const inOrder = [...own.filter(({ scope }) => scope === "global"), ...own.filter(({ scope }) => scope !== "global")];
  return {
    localAddresses: inOrder.map(({ address }) => address),
    outInterface: routing(await readRoutes(runner, family)),
    redirectAddress: (name) => own.find((one) => one.interface === name)?.address,
  };
}

type Settings = Omit<Ipvs, "servers">;

/** The environment with virtual servers, sets and their addresses; without settings those that ipvs mode makes. */
export function ipvsEnvironment(
  host: Environment,
  { servers, sets, addresses }: IpvsObjects,
  settings: Settings = { conntrack: true, expireQuiescentTemplate: true },
): Environment {
  return {
    ...host,
    localAddresses: [...(host.localAddresses ?? []), ...(addresses ?? [])],
    sets: packetSets(sets),
    ...(servers.length > 0 && { ipvs: { servers, ...settings } }),
  };
}

/** What ipvs mode has in this host's kernel; nothing where there is no ipset or IPVS. */
export async function readIpvsObjects(runner: Runner): Promise<IpvsObjects> {
  const [sets, servers, addresses] = await Promise.all([
    orEmpty(() => collect(createIpset(runner).save())),
    orEmpty(() => collect(createIpvsadm(runner).save())),
    createLinks(runner).addresses(DEVICE),
  ]);
  return { sets, servers, addresses };
}

async function orEmpty<T>(read: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await read();
  } catch {
    return [];
  }
}

/** Sets of types that the tracer does not know are left out: a rule that asks for one cannot be decided. */
function packetSets(sets: readonly SetState[]): ReadonlyMap<string, PacketSet> {
  return new Map(
    sets.flatMap(({ name, type, members }) => {
      try {
        return [[name, packetSet(type, members)] as const];
      } catch (error) {
        if (error instanceof RangeError) return [];
        throw error;
      }
    }),
  );
}

/** Whether the node's rules let packets in state INVALID through. */
export async function isTcpLiberal(runner: Runner): Promise<boolean> {
  const value = (await readText(runner, "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal")).trim();
  return value !== "" && value !== "0";
}

async function readRoutes(runner: Runner, family: IPFamily) {
  const flag = family === "IPv4" ? "-4" : "-6";
  const { stdout } = await runner.run(["ip", "-json", flag, "route", "show"]);
  return parseRoutes(stdout, family);
}

async function ipvsSettings(runner: Runner) {
  const on = async (key: string) => (await readText(runner, `/proc/sys/net/ipv4/vs/${key}`)).trim() === "1";
  return { conntrack: await on("conntrack"), expireQuiescentTemplate: await on("expire_quiescent_template") };
}

const RECENT = "/proc/net/xt_recent";

/** The clients that affinity knows. */
async function readRecent(runner: Runner): Promise<RecentLists> {
  const names = (await attempt(runner, ["ls", RECENT])).split("\n").filter((name) => name !== "");
  if (names.length === 0) return new Map();
  const jiffies = Number(/^jiffies: (\d+)/m.exec(await readText(runner, "/proc/timer_list"))?.[1] ?? "NaN");
  const uptime = Number((await readText(runner, "/proc/uptime")).split(" ")[0]);
  if (Number.isNaN(jiffies)) return new Map();
  const time = { jiffies, perSecond: ticksPerSecond(jiffies, uptime) };
  const lists = names.map(
    async (name) => [name, parseRecentList(await readText(runner, `${RECENT}/${name}`), time)] as const,
  );
  return new Map(await Promise.all(lists));
}

function readText(runner: Runner, file: string): Promise<string> {
  return attempt(runner, ["cat", file]);
}

async function attempt(runner: Runner, argv: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await runner.run(argv)).stdout;
  } catch {
    return "";
  }
}
