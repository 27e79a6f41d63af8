/** Virtual servers, sets and addresses of a kernel against those expected, and as payloads make them. */

import { serverChange } from "@fairlead/backend-ipvs";
import { socketText, toEnd } from "@fairlead/base";
import {
  type Destination,
  type DestinationKey,
  parseSetCommand,
  ServerReader,
  type SetMember,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";
import type { Finding } from "./rules.ts";

/** What ipvs mode has in the kernel alongside rules. Sets and addresses of others may be among them. */
export interface IpvsObjects {
  readonly servers: readonly VirtualServerState[];
  readonly sets: readonly SetState[];
  /** On kube-ipvs0; undefined: there is no such device. */
  readonly addresses: ReadonlySet<string> | undefined;
}

export interface IpvsCompareOptions {
  /** The service of an address that a frontend has, `namespace/name:port`. */
  readonly serviceOf?: (address: string, port?: number) => string | undefined;
  /** Whether an unexpected virtual server is the proxy's business; default: where its address is on kube-ipvs0. */
  readonly owns?: (server: VirtualServerState) => boolean;
}

/**
 * How the virtual servers, sets and addresses of a kernel differ from those expected. TCP destinations of weight
 * 0 that no service expects are ones that drain.
 */
export function compareIpvs(
  expected: IpvsObjects,
  actual: IpvsObjects,
  options: IpvsCompareOptions = {},
): readonly Finding[] {
  const {
    serviceOf = () => undefined,
    owns = ({ address }: VirtualServerState) => actual.addresses?.has(address) === true,
  } = options;
  const service = (address: string, port?: number) => serviceField(serviceOf(address, port));
  return [
    ...compareServers(expected.servers, actual.servers, owns, service),
    ...compareIpsets(expected.sets, actual.sets, service),
    ...compareAddresses(expected.addresses, actual.addresses, service),
  ];
}

/** The virtual servers that a payload of `ipvsadm --restore` makes where there are none. */
export function serversOf(payload: string): readonly VirtualServerState[] {
  const reader = new ServerReader();
  const complete = linesOf(payload).flatMap((line) => reader.push(line) ?? []);
  const last = reader.end();
  return last === undefined ? complete : [...complete, last];
}

/** The sets that a payload of `ipset restore` makes where there are none. */
export function setsOf(payload: string): readonly SetState[] {
  const sets = new Map<string, SetState & { readonly members: Set<SetMember> }>();
  for (const line of linesOf(payload)) {
    const command = parseSetCommand(line);
    if (command.kind === "create") sets.set(command.set.name, { ...command.set, members: new Set() });
    else if (command.kind === "add") sets.get(command.set)?.members.add(command.member);
    else throw new RangeError(`this payload does more than fill new sets: ${line}`);
  }
  return [...sets.values()];
}

/** The addresses that a batch of `ip` puts on devices. */
export function addressesOf(batch: string): ReadonlySet<string> {
  return new Set([...batch.matchAll(/^addr add ([^/\s]+)/gm)].map(([, address = ""]) => address));
}

const OWN_SET = /^KUBE-/;
const DEVICE = "kube-ipvs0";

type ServiceOf = (address: string, port?: number) => Pick<Finding, "service">;

function serviceField(service: string | undefined): Pick<Finding, "service"> {
  return service === undefined ? {} : { service };
}

function compareServers(
  expected: readonly VirtualServerState[],
  actual: readonly VirtualServerState[],
  owns: (server: VirtualServerState) => boolean,
  service: ServiceOf,
): readonly Finding[] {
  const present = new Map(actual.map((server) => [nameOf(server), server]));
  const wanted = new Set(expected.map(nameOf));
  const extra = actual.filter((server) => !wanted.has(nameOf(server)) && owns(server));
  return [
    ...expected.flatMap((server) =>
      compareServer(server, present.get(nameOf(server)), service(server.address, server.port)),
    ),
    ...extra.map(
      (server): Finding => ({
        kind: "extra",
        where: nameOf(server),
        what: "the virtual server",
        ...service(server.address, server.port),
      }),
    ),
  ];
}

function nameOf({ protocol, address, port }: VirtualServerState): string {
  return `virtual server ${protocol} ${socketText(address, port)}`;
}

/** What the agent would do to the server, as findings. */
function compareServer(
  expected: VirtualServerState,
  actual: VirtualServerState | undefined,
  of: Pick<Finding, "service">,
): Finding[] {
  const where = nameOf(expected);
  if (actual === undefined) return [{ kind: "missing", where, what: "the virtual server", ...of }];
  const { additions, removals } = toEnd(serverChange({ server: expected, endpoints: expected.destinations }, actual));
  const there = new Map(actual.destinations.map((one) => [destinationText(one), one]));
  return [...additions, ...removals].flatMap((command): Finding[] => {
    if (command.kind === "edit-server")
      return [{ kind: "different", where, what: `${settings(actual)}, expected ${settings(expected)}`, ...of }];
    if (!("destination" in command)) return [];
    const what = destinationText(command.destination);
    if (command.kind === "add-destination") return [{ kind: "missing", where, what, ...of }];
    const found = there.get(what);
    if (command.kind === "delete-destination" || found === undefined || removals.includes(command))
      return [{ kind: "extra", where, what, ...of }];
    const text = ({ weight, forwarding }: Destination) => `${forwarding}, weight ${weight}`;
    return [
      { kind: "different", where, what: `${what}: ${text(found)}, expected ${text(command.destination)}`, ...of },
    ];
  });
}

function destinationText({ address, port }: DestinationKey): string {
  return `destination ${address} ${port}`;
}

function settings({ scheduler, flags, persistenceSeconds, others = [] }: VirtualServerState): string {
  const persistence = persistenceSeconds === undefined ? "" : `, persistent for ${persistenceSeconds} s`;
  return [`scheduler ${[scheduler, ...flags].join(",")}${persistence}`, ...others].join(" ");
}

function compareIpsets(
  expected: readonly SetState[],
  actual: readonly SetState[],
  service: ServiceOf,
): readonly Finding[] {
  const present = new Map(actual.filter(({ name }) => OWN_SET.test(name)).map((set) => [set.name, set]));
  return expected.flatMap((want): Finding[] => {
    const where = `ipset ${want.name}`;
    const have = present.get(want.name);
    if (have === undefined) return [{ kind: "missing", where, what: `the set, of type ${want.type}` }];
    if (have.type !== want.type)
      return [{ kind: "different", where, what: `type ${have.type}, expected ${want.type}` }];
    const member =
      (kind: Finding["kind"]) =>
      (what: string): Finding => ({ kind, where, what, ...service(...frontendOf(what)) });
    return [
      ...[...want.members].filter((one) => !have.members.has(one)).map(member("missing")),
      ...[...have.members].filter((one) => !want.members.has(one)).map(member("extra")),
    ];
  });
}

/** `10.96.0.1,tcp:443` */
function frontendOf(member: string): [address: string, port?: number] {
  const [address = "", protocolAndPort = ""] = member.split(",");
  const port = Number(protocolAndPort.split(":")[1]);
  return Number.isNaN(port) ? [address] : [address, port];
}

function compareAddresses(
  expected: IpvsObjects["addresses"],
  actual: IpvsObjects["addresses"],
  service: ServiceOf,
): readonly Finding[] {
  if (expected === undefined) return [];
  if (actual === undefined) return [{ kind: "missing", where: DEVICE, what: "the device" }];
  const finding =
    (kind: Finding["kind"]) =>
    (what: string): Finding => ({ kind, where: DEVICE, what, ...service(what) });
  return [
    ...[...expected].filter((one) => !actual.has(one)).map(finding("missing")),
    ...[...actual].filter((one) => !expected.has(one) && !one.startsWith("fe80:")).map(finding("extra")),
  ];
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}
