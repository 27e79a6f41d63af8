import {
  type AddressRange,
  type AddressWords,
  addressRange,
  addressWords,
  familyOf,
  inRange,
  wordsText,
} from "@fairlead/base";
import type { IPFamily } from "@fairlead/netfilter";
import { checkHostAddress } from "./check-packet.ts";
import type { Environment } from "./environment.ts";
import { VirtualServers } from "./virtual-servers.ts";

const LOOPBACK: Readonly<Record<IPFamily, AddressRange>> = {
  IPv4: addressRange("127.0.0.0/8"),
  IPv6: addressRange("::1/128"),
};
const MULTICAST: Readonly<Record<IPFamily, AddressRange>> = {
  IPv4: addressRange("224.0.0.0/4"),
  IPv6: addressRange("ff00::/8"),
};
/** What a REDIRECT of the host's own packets goes to. */
export const LOOPBACK_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

/** The facts of an environment, ready to be asked. */
export class Host {
  readonly environment: Environment;
  readonly servers: VirtualServers;
  readonly #family: IPFamily;
  readonly #local: ReadonlySet<string>;
  readonly #broadcast: ReadonlySet<string>;

  constructor(environment: Environment, family: IPFamily) {
    this.environment = environment;
    this.servers = new VirtualServers(environment.ipvs, family);
    this.#family = family;
    this.#local = canonicalAddresses("localAddresses", environment, family);
    this.#broadcast = canonicalAddresses("broadcastAddresses", environment, family);
  }

  isLocal(address: AddressWords): boolean {
    return inRange(LOOPBACK[this.#family], address) || (this.#local.size > 0 && this.#local.has(wordsText(address)));
  }

  isMulticast(address: AddressWords): boolean {
    return inRange(MULTICAST[this.#family], address);
  }

  /** 0.0.0.0/8 counts as the kernel counts it (inet_addr_type). */
  isBroadcast(address: AddressWords): boolean {
    if (this.#family === "IPv6") return false;
    const [word = 0] = address;
    return word === 0xffffffff || word >>> 24 === 0 || this.#broadcast.has(wordsText(address));
  }

  /** The first of the host's addresses in the family. */
  ownAddress(): string | undefined {
    return this.#local.values().next().value;
  }
}

/** @throws PacketError for what is not an address */
function canonicalAddresses(
  field: "localAddresses" | "broadcastAddresses",
  environment: Environment,
  family: IPFamily,
): Set<string> {
  const canonical = new Set<string>();
  for (const address of environment[field] ?? []) {
    checkHostAddress(field, address);
    if (familyOf(address) === family) canonical.add(wordsText(addressWords(address)));
  }
  return canonical;
}
