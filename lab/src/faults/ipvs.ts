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

/** An address that is none of a service of ours. */
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
