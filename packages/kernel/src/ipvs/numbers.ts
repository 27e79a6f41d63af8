/** The numbers of IPVS's family of generic netlink (linux/ip_vs.h). */
export const COMMANDS = {
  newService: 1,
  setService: 2,
  deleteService: 3,
  getService: 4,
  newDestination: 5,
  setDestination: 6,
  deleteDestination: 7,
  getDestination: 8,
} as const;

/** Attributes of a message. */
export const PART = { server: 1, destination: 2 } as const;

/** Attributes of a virtual server. */
export const SERVER_PART = {
  family: 1,
  protocol: 2,
  address: 3,
  port: 4,
  firewallMark: 5,
  scheduler: 6,
  flags: 7,
  timeout: 8,
  netmask: 9,
  engine: 11,
} as const;

/** Attributes of a destination. */
export const DESTINATION_PART = {
  address: 1,
  port: 2,
  forwarding: 3,
  weight: 4,
  upperThreshold: 5,
  lowerThreshold: 6,
  active: 7,
  inactive: 8,
  family: 11,
} as const;

export const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/** IP_VS_CONN_F_MASQ, _DROUTE, _TUNNEL; 1 is a direct route to this host itself. */
export const FORWARDING_NUMBERS = { masquerade: 0, tunnel: 2, route: 3 } as const;
export const FORWARDING_MASK = 7;

/** IP_VS_SVC_F_PERSISTENT, IP_VS_SVC_F_ONEPACKET. */
export const PERSISTENT = 0x1;
export const ONE_PACKET = 0x4;

/** IP_VS_SVC_F_SCHED1 and the next two, by the names that ipvsadm has for a scheduler's. */
export function schedulerFlags(scheduler: string): ReadonlyMap<string, number> {
  const [first, second] = scheduler === "sh" || scheduler === "mh" ? named(scheduler) : ["flag-1", "flag-2"];
  return new Map([
    [first, 0x8],
    [second, 0x10],
    ["flag-3", 0x20],
  ]);
}

function named(scheduler: string): readonly [string, string] {
  return [`${scheduler}-fallback`, `${scheduler}-port`];
}
