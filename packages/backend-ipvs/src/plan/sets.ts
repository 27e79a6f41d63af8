/** The sets, and the work on them. */

import type { IPFamily } from "@fairlead/core";
import { MAX_SET_NAME_LENGTH, type SetCommand, type SetDefinition, type SetType } from "@fairlead/netfilter";

/** The sets of one family, by their names for IPv4. */
export type SetKey =
  | "KUBE-LOOP-BACK"
  | "KUBE-CLUSTER-IP"
  | "KUBE-EXTERNAL-IP"
  | "KUBE-EXTERNAL-IP-LOCAL"
  | "KUBE-LOAD-BALANCER"
  | "KUBE-LOAD-BALANCER-FW"
  | "KUBE-LOAD-BALANCER-LOCAL"
  | "KUBE-LOAD-BALANCER-SOURCE-IP"
  | "KUBE-LOAD-BALANCER-SOURCE-CIDR"
  | "KUBE-NODE-PORT-TCP"
  | "KUBE-NODE-PORT-LOCAL-TCP"
  | "KUBE-NODE-PORT-UDP"
  | "KUBE-NODE-PORT-LOCAL-UDP"
  | "KUBE-NODE-PORT-SCTP-HASH"
  | "KUBE-NODE-PORT-LOCAL-SCTP-HASH"
  | "KUBE-HEALTH-CHECK-NODE-PORT"
  | "KUBE-IPVS-IPS";

const TYPES: Readonly<Record<SetKey, SetType>> = {
  "KUBE-LOOP-BACK": "hash:ip,port,ip",
  "KUBE-CLUSTER-IP": "hash:ip,port",
  "KUBE-EXTERNAL-IP": "hash:ip,port",
  "KUBE-EXTERNAL-IP-LOCAL": "hash:ip,port",
  "KUBE-NODE-PORT-LOCAL-TCP": "bitmap:port",
  "KUBE-NODE-PORT-TCP": "bitmap:port",
  "KUBE-NODE-PORT-LOCAL-UDP": "bitmap:port",
  "KUBE-NODE-PORT-UDP": "bitmap:port",
  // A bitmap of ports knows nothing of SCTP.
  "KUBE-NODE-PORT-LOCAL-SCTP-HASH": "hash:ip,port",
  "KUBE-NODE-PORT-SCTP-HASH": "hash:ip,port",
  "KUBE-LOAD-BALANCER-LOCAL": "hash:ip,port",
  "KUBE-LOAD-BALANCER": "hash:ip,port",
  "KUBE-LOAD-BALANCER-SOURCE-IP": "hash:ip,port,ip",
  "KUBE-LOAD-BALANCER-SOURCE-CIDR": "hash:ip,port,net",
  "KUBE-LOAD-BALANCER-FW": "hash:ip,port",
  "KUBE-HEALTH-CHECK-NODE-PORT": "bitmap:port",
  "KUBE-IPVS-IPS": "hash:ip",
};

/**
 * All of them, those that make exceptions of others before these: members are added in this order and go in reverse.
 */
export const SET_KEYS: readonly SetKey[] = Object.keys(TYPES).filter(isSetKey);

/** The set's name in a family: IPv6 has a 6 in it, and is cut to what ipset takes. */
export function setName(key: SetKey, family: IPFamily): string {
  return family === "IPv4" ? key : key.replace("KUBE-", "KUBE-6-").slice(0, MAX_SET_NAME_LENGTH);
}

/**
 * The ipset of a key as the mode creates it: its name in the family and its type. One that will have many members has
 * twice the room; the others are as kube-proxy makes them, which can take over no set with other room.
 *
 * @param members how many it will have
 */
export function setDefinition(key: SetKey, family: IPFamily, members = 0): SetDefinition {
  const type = TYPES[key];
  const definition = { name: setName(key, family), type };
  if (type === "bitmap:port") return definition;
  if (members <= MANY_MEMBERS) return { ...definition, family };
  return { ...definition, family, maxElements: 2 ** Math.ceil(Math.log2(2 * members)) };
}

/** Three quarters of what a set has room for by default. */
const MANY_MEMBERS = 49_152;

/** What a step does to the sets before the virtual servers change, and after. */
interface SetWork {
  readonly first: readonly SetCommand[];
  readonly last: readonly SetCommand[];
}

/** In the order of `SET_KEYS` what comes, backwards what goes: every beginning of it serves. */
export function setWork(moves: ReadonlyMap<SetKey, Moves>, family: IPFamily): SetWork {
  const first: SetCommand[] = [];
  const last: SetCommand[] = [];
  for (const key of SET_KEYS) {
    for (const member of moves.get(key)?.added ?? []) {
      const late = isException(key, member, moves, "added");
      (late ? last : first).push({ kind: "add", set: setName(key, family), member });
    }
  }
  for (const key of SET_KEYS.toReversed()) {
    for (const member of moves.get(key)?.removed ?? []) {
      const early = isException(key, member, moves, "removed");
      (early ? first : last).push({ kind: "del", set: setName(key, family), member });
    }
  }
  return { first, last };
}

function isSetKey(name: string): name is SetKey {
  return Object.hasOwn(TYPES, name);
}

/**
 * Members of these sets take something away from those of the others: their clients are not masqueraded. While a
 * frontend stays and only its policy changes, that must not hold before the destinations on other nodes are gone, which
 * would answer past this node.
 */
const EXCEPTIONS: ReadonlyMap<SetKey, SetKey> = new Map([
  ["KUBE-NODE-PORT-LOCAL-TCP", "KUBE-NODE-PORT-TCP"],
  ["KUBE-NODE-PORT-LOCAL-UDP", "KUBE-NODE-PORT-UDP"],
  ["KUBE-NODE-PORT-LOCAL-SCTP-HASH", "KUBE-NODE-PORT-SCTP-HASH"],
  ["KUBE-LOAD-BALANCER-LOCAL", "KUBE-LOAD-BALANCER"],
]);

/** The member comes or goes without the frontend itself. */
function isException(key: SetKey, member: string, moves: ReadonlyMap<SetKey, Moves>, moved: keyof Moves): boolean {
  const rule = EXCEPTIONS.get(key);
  return rule !== undefined && moves.get(rule)?.[moved].includes(member) !== true;
}

/** What came and what went of one kind. */
export interface Moves {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}
