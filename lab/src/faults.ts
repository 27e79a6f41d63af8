/** What goes wrong, each fault once: specs, kernel tests and the guest use it. */

import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bracketed } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import { isThere, PLAIN_TOOL } from "./support/machine.ts";

export function nftTable(family: IPFamily): string {
  return `${family === "IPv4" ? "ip" : "ip6"} kube-proxy`;
}

export const nftablesByHand: ByHand = {
  noServices: flushing("services"),
  noMasquerade: flushing("masquerading"),
  // The second refuses for ClusterIPs whatever no service has a port for.
  noRefusal: flushing("service-endpoints-check", "cluster-ips-check"),
  noService: (family, _service, address) => {
    const element = `${nftTable(family)} service-ips { ${address} . tcp . 80 }`;
    return ["sh", "-c", 'nft get element "$1" 2>/dev/null || exit 0; nft delete element "$1"', "sh", element];
  },
};

export function flushArgv(family: IPFamily, table: string, chain?: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-F", ...(chain === undefined ? [] : [chain])];
}

export function deleteChainsArgv(family: IPFamily, table: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-X"];
}

/** Deletes the first rule of a service's own chain that leads to an endpoint. */
const ENDPOINT_DELETED = String.raw`
  rule=$("$1-save" -t nat | grep -m 1 -- "^-A KUBE-SVC-.*\"$2 -> ") || exit 0
  printf '*nat\n-D%s\nCOMMIT\n' "$(echo "$rule" | cut -c3-)" | "$1-restore" --noflush`;

export const iptablesByHand: ByHand = {
  noServices: (family) => flushArgv(family, "nat", "KUBE-SERVICES"),
  noMasquerade: (family) => flushArgv(family, "nat", "KUBE-POSTROUTING"),
  noRefusal: (family) => flushArgv(family, "filter", "KUBE-SERVICES"),
  noService: (family, service) => ["sh", "-c", ENDPOINT_DELETED, "sh", PLAIN_TOOL[family], service],
};

/** Something done to the rules by hand. */
export type Damage =
  | { readonly remove: RegExp; readonly table: "nat" | "filter" }
  | { readonly insert: readonly string[]; readonly table: "nat" | "filter" };

/** Deletes every rule whose line in iptables-save matches, or inserts one. */
export async function inflict(runner: Runner, damage: Damage): Promise<void> {
  const { table } = damage;
  if ("insert" in damage) {
    await runner.run(["iptables", "-t", table, "-I", ...damage.insert]);
    return;
  }
  const { stdout } = await runner.run(["iptables-save", "-t", table]);
  const rules = stdout.split("\n").filter((line) => line.startsWith("-A ") && damage.remove.test(line));
  if (rules.length === 0) throw new Error(`no rule of ${table} matches ${damage.remove}`);
  const deletions = rules.map((line) => `-D ${line.slice("-A ".length)}`);
  const payload = [`*${table}`, ...deletions, "COMMIT", ""].join("\n");
  await runner.run(["iptables-restore", "--noflush"], { input: payload });
}

/** A service of a node in ipvs mode, by its ClusterIP. */
interface Served {
  /** IPv4 */
  readonly address: string;
  readonly port: number;
}

/** One of its endpoints, `10.144.1.5:8080`. */
interface Destination {
  readonly destination: string;
}

/** An address that belongs to no service of ours. */
interface Other {
  readonly other: string;
}

/** All that ipvs mode can be broken at. */
export type IpvsTarget = Served & Destination & Other;

const DEVICE = "kube-ipvs0";

/**
 * All that is ours in the rules goes, or the sets could not be destroyed; an agent may put it back in between.
 *
 * @see ipset(8): a set that a rule asks is in use
 */
const WITHOUT_SETS = `until
  for tool in iptables ip6tables; do $tool-save | grep -v KUBE- | $tool-restore; done
  ipset destroy
do :; done`;

/** What an operator does by hand in ipvs mode: each a script for sh. */
export const ipvsFaults = {
  serversCleared: () => "ipvsadm --clear",
  serverRemoved: ({ address, port }: Served) => `ipvsadm -D -t ${address}:${port}`,
  serverAdded: ({ address, port }: Served) => `ipvsadm -A -t ${address}:${port + 1} -s rr`,
  schedulerChanged: ({ address, port }: Served) => `ipvsadm -E -t ${address}:${port} -s wrr`,
  weightChanged: ({ address, port, destination }: Served & Destination) =>
    `ipvsadm -e -t ${address}:${port} -r ${destination} -m -w 5`,
  destinationRemoved: ({ address, port, destination }: Served & Destination) =>
    `ipvsadm -d -t ${address}:${port} -r ${destination}`,
  destinationAdded: ({ address, port }: Served) => `ipvsadm -a -t ${address}:${port} -r 10.144.9.9:8080 -m -w 1`,
  deviceDeleted: () => `ip link delete ${DEVICE}`,
  addressDeleted: ({ address }: Pick<Served, "address">) => `ip address del ${address}/32 dev ${DEVICE}`,
  addressAdded: ({ other }: Other) => `ip address add ${other}/32 dev ${DEVICE}`,
  setsDestroyed: () => WITHOUT_SETS,
  setEmptied: () => "ipset flush KUBE-CLUSTER-IP",
  entryRemoved: ({ address, port }: Served) => `ipset del KUBE-CLUSTER-IP ${address},tcp:${port}`,
  entryAdded: ({ other }: Other) => `ipset add KUBE-CLUSTER-IP ${other},tcp:80`,
  ruleRemoved: () => "iptables -t nat -D KUBE-MARK-MASQ 1",
} as const satisfies Readonly<Record<string, (target: IpvsTarget) => string>>;

export type IpvsFault = keyof typeof ipvsFaults;

/** What takes one promise of a mode away on a node, while nothing repairs it. */
export interface ByHand {
  /** No service is served anymore. */
  readonly noServices: (family: IPFamily) => Argv;
  readonly noMasquerade: (family: IPFamily) => Argv;
  /** No rule refuses connections to services without endpoints. */
  readonly noRefusal: (family: IPFamily) => Argv;
  /** A service, `namespace/name` at an address, TCP port 80, is not served as it should be; no error where it is so. */
  readonly noService: (family: IPFamily, service: string, address: string) => Argv;
}

/**
 * Ends what an address has open at a local port; both ends get a reset, and each connection is a line of output.
 * Kernels without CONFIG_INET_DIAG_DESTROY end none.
 */
export function cutArgv(port: string, address: string): Argv {
  const to = bracketed(address);
  return ["ss", "-K", "-H", "state", "established", "sport", `:${port}`, "dst", to];
}

/** A folder for the head of PATH, whose iptables-nft-restore is killed half way when it is asked to. */
interface HalfRestore {
  readonly path: string;
  /** The next restore is killed. */
  arm(): Promise<void>;
  /** Whether that is still to come. */
  armed(): Promise<boolean>;
}

const TOOL = "iptables-nft-restore";

/**
 * The real one gets the payload up to its first COMMIT and the head of the next table, and is killed while it waits for
 * more.
 */
const script = (flag: string) => `#!/bin/sh
PATH=/usr/sbin:/sbin:/usr/bin:/bin
case "$*" in *--version*) exec ${TOOL} "$@";; esac
rm "${flag}" 2>/dev/null || exec ${TOOL} "$@"
exec 3<&0
{ sed '/^COMMIT$/q' <&3; echo '*nat'; sleep 2; } | ${TOOL} "$@" &
victim=$!
sleep 0.2
kill -9 "$victim"
kill -9 $$
`;

/** @param folder an existing one, to be removed by the caller */
export async function halfRestore(folder: string): Promise<HalfRestore> {
  const bin = join(folder, "bin");
  const flag = join(folder, "kill-the-next-restore");
  await mkdir(bin);
  await writeFile(join(bin, TOOL), script(flag));
  await chmod(join(bin, TOOL), 0o755);
  return {
    path: `${bin}:${process.env["PATH"] ?? ""}`,
    arm: () => writeFile(flag, ""),
    armed: () => isThere(flag),
  };
}

/** What another program writes alongside ours, and takes back: each a script for sh, which fails where it cannot. */
export const NEIGHBOR = {
  writes: `
    iptables -t nat -N THEIRS
    iptables -t nat -A THEIRS -d 203.0.113.99 -j RETURN
    iptables -t nat -I PREROUTING -j THEIRS
    nft add table ip theirs
    nft add chain ip theirs input '{ type filter hook input priority 10; }'
    nft add rule ip theirs input ip saddr 203.0.113.99 accept`,
  removes: `
    iptables -t nat -D PREROUTING -j THEIRS
    iptables -t nat -D THEIRS -d 203.0.113.99 -j RETURN
    iptables -t nat -X THEIRS
    nft list chain ip theirs input | grep -q 203.0.113.99
    nft delete table ip theirs`,
} as const;

export interface HeldLock extends AsyncDisposable {
  release(): Promise<void>;
}

/** Prints a line once it has the lock, and keeps it until standard input ends, with this process at the latest. */
const HOLD = ["sh", "-c", "echo held && exec cat"];

/** Holds the lock of a namespace until it is released. */
export async function holdXtablesLock({ argvPrefix, env }: NetworkNamespace): Promise<HeldLock> {
  const [program = "nsenter", ...prefix] = argvPrefix;
  const child = execa(program, [...prefix, "flock", env["XTABLES_LOCKFILE"] ?? "", ...HOLD], {
    stdin: "pipe",
    buffer: { stdout: false, stderr: true },
    reject: false,
  });
  const failed = child.then(({ stderr }): never => {
    throw new Error(`the lock cannot be had: ${stderr}`);
  });
  await Promise.race([once(child.stdout, "data"), failed]);
  const release = async () => {
    child.stdin.end();
    await child;
  };
  return { release, [Symbol.asyncDispose]: release };
}

function flushing(...chains: readonly string[]): (family: IPFamily) => Argv {
  return (family) => ["nft", chains.map((chain) => `flush chain ${nftTable(family)} ${chain}`).join("; ")];
}
