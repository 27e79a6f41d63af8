/** ipvsadm and links in memory, line by line. */

import { familyOf, socketText } from "@fairlead/base";
import {
  type Destination,
  type DestinationKey,
  type LinkCommand,
  renderServerKey,
  type ServerCommand,
  type ServerConnections,
  type VirtualServer,
  type VirtualServerKey,
  type VirtualServerState,
} from "@fairlead/netfilter";
import type { IpvsadmClient, IpvsTimeouts } from "../ipvs.ts";
import type { LinksClient } from "../links.ts";
import { type Argv, CommandError } from "../runner.ts";
import { Faults, killed, singleStep } from "./faults.ts";

/** The tool and the kernel that the fake stands for. */
export interface FakeIpvsadmOptions {
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** Schedulers that this kernel has. Default: all of them. */
  readonly schedulers?: Iterable<string>;
  /** False: a kernel without IPVS. Default true. */
  readonly supported?: boolean;
  /** Netlink is at hand: calls are `netlink ipvs …`, and start no process. Default false. */
  readonly netlink?: boolean;
}

interface FakeServer {
  readonly server: VirtualServer;
  readonly destinations: Map<string, Destination>;
}

const SCHEDULERS = ["rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "sed", "nq", "mh", "fo", "ovf", "twos"];

const ARGUMENTS = { save: ["--save", "-n"], list: ["--list", "-n"], restore: ["--restore"] } as const;

/** The kernel's virtual servers in memory, and how many connections tests say there are. */
export class FakeIpvsadm implements IpvsadmClient {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  /** The kernel's timeouts in seconds, with its own defaults. */
  timeouts: Required<IpvsTimeouts> = { tcp: 900, tcpFin: 120, udp: 300 };
  readonly #schedulers: ReadonlySet<string>;
  readonly #supported: boolean;
  readonly #netlink: boolean;
  readonly #servers = new Map<string, FakeServer>();
  readonly #connections = new Map<string, { readonly active: number; readonly inactive: number }>();

  constructor(options: FakeIpvsadmOptions = {}) {
    this.faults = options.faults ?? new Faults();
    this.#schedulers = new Set(options.schedulers ?? SCHEDULERS);
    this.#supported = options.supported ?? true;
    this.#netlink = options.netlink ?? false;
  }

  async *save(): AsyncGenerator<VirtualServerState, void, void> {
    yield* await this.#do(this.#call("save"), () => this.servers());
  }

  async *connections(servers: readonly VirtualServerKey[]): AsyncGenerator<ServerConnections, void, void> {
    const wanted = new Set(servers.map(renderServerKey));
    yield* await this.#do(this.#call("list"), () =>
      this.servers()
        .filter((server) => server.destinations.length > 0 && wanted.has(renderServerKey(server)))
        .map((server) => this.#counted(server)),
    );
  }

  async change(commands: Iterable<ServerCommand>): Promise<void> {
    const argv = this.#call("restore");
    if (!this.#supported) await this.#do(argv, () => {});
    await execute(this.faults, argv, commands, (command) => this.#carryOut(command));
  }

  setTimeouts({ tcp = 0, tcpFin = 0, udp = 0 }: IpvsTimeouts): Promise<void> {
    return this.#do(["ipvsadm", "--set", String(tcp), String(tcpFin), String(udp)], () => {
      const before = this.timeouts;
      this.timeouts = { tcp: tcp || before.tcp, tcpFin: tcpFin || before.tcpFin, udp: udp || before.udp };
    });
  }

  /** The servers as they are now, without a call; in the order of their making. */
  servers(): VirtualServerState[] {
    return [...this.#servers.values()].map(({ server, destinations }) => ({
      ...server,
      destinations: [...destinations.values()],
    }));
  }

  /** From now on the destination has so many connections; those of a destination that goes are forgotten. */
  connect(server: VirtualServerKey, destination: DestinationKey, active: number, inactive = 0): void {
    this.#connections.set(destinationKey(server, destination), { active, inactive });
  }

  /** `ipvsadm --clear`, by hand. */
  clear(): void {
    this.#servers.clear();
    this.#connections.clear();
  }

  /**
   * What another process does with ipvsadm: no call of ours, no fault.
   *
   * @throws Error with what the tool would say, for a command that it refuses
   */
  meddle(...commands: readonly ServerCommand[]): void {
    for (const command of commands) {
      const refused = this.#carryOut(command);
      if (refused !== undefined) throw new Error("skip" in refused ? refused.skip : refused.stop);
    }
  }

  #call(what: keyof typeof ARGUMENTS): Argv {
    // A kernel without IPVS does not answer there.
    return this.#netlink && this.#supported ? ["netlink", "ipvs", what] : ["ipvsadm", ...ARGUMENTS[what]];
  }

  #counted(state: VirtualServerState): ServerConnections {
    const none = { active: 0, inactive: 0 };
    const { family, protocol, address, port, destinations } = state;
    return {
      ...{ family, protocol, address, port },
      destinations: destinations.map((one) => ({
        ...one,
        ...(this.#connections.get(destinationKey(state, one)) ?? none),
      })),
    };
  }

  #carryOut(command: ServerCommand): Outcome {
    const key = renderServerKey(command.server);
    const present = this.#servers.get(key);
    switch (command.kind) {
      case "add-server":
        return present === undefined ? this.#put(key, command.server) : { skip: "Service already exists" };
      case "edit-server":
        return present === undefined ? { skip: "No such service" } : this.#put(key, command.server, present);
      case "delete-server":
        return this.#delete(key, present);
      default:
        return this.#destination(command, present);
    }
  }

  #put(key: string, server: VirtualServer, present?: FakeServer): Outcome {
    if (server.port === 0 && server.persistenceSeconds === undefined) {
      return { stop: "Zero port specified for non-persistent service", exitCode: 2 };
    }
    if (!this.#schedulers.has(server.scheduler)) return { skip: "Scheduler or persistence engine not found" };
    this.#servers.set(key, { server, destinations: present?.destinations ?? new Map() });
    return undefined;
  }

  #delete(key: string, present: FakeServer | undefined): Outcome {
    if (present === undefined) return { skip: "No such service" };
    for (const destination of present.destinations.values()) {
      this.#connections.delete(destinationKey(present.server, destination));
    }
    this.#servers.delete(key);
    return undefined;
  }

  #destination(
    command: Extract<ServerCommand, { readonly destination: DestinationKey }>,
    present: FakeServer | undefined,
  ): Outcome {
    const { server, destination } = command;
    const mixed = familyOf(destination.address) !== server.family;
    if (mixed && command.kind === "add-destination") {
      return { stop: "Different address family is allowed only for tunneling servers", exitCode: 2 };
    }
    if (present === undefined) return { skip: "Service not defined" };
    const key = socketText(destination.address, destination.port);
    const there = present.destinations.has(key);
    if (command.kind === "add-destination" && there) return { skip: "Destination already exists" };
    if (command.kind !== "add-destination" && !there) return { skip: "No such destination" };
    if (command.kind !== "delete-destination") present.destinations.set(key, command.destination);
    else {
      present.destinations.delete(key);
      this.#connections.delete(destinationKey(server, destination));
    }
    return undefined;
  }

  #do<T>(argv: Argv, work: () => T): Promise<T> {
    return singleStep(this.faults, argv, () => {
      if (this.#supported) return work();
      const stderr =
        "Can't initialize ipvs: Protocol not available\nAre you sure that IP Virtual Server is built in the kernel or as module?";
      throw new CommandError({ argv, reason: "exit", exitCode: 2, stderr });
    });
  }
}

interface FakeLinksOptions {
  readonly faults?: Faults;
  /** Netlink is at hand: all calls are `netlink ip`, and start no process. Default false. */
  readonly netlink?: boolean;
}

export class FakeLinks implements LinksClient {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #netlink: boolean;
  readonly #devices = new Map<string, Set<string>>();

  constructor({ faults = new Faults(), netlink = false }: FakeLinksOptions = {}) {
    this.faults = faults;
    this.#netlink = netlink;
  }

  /** The addresses of a device as they are now, without a call. */
  device(name: string): ReadonlySet<string> | undefined {
    return this.#devices.get(name);
  }

  /**
   * What another process does with `ip -batch`: no call of ours, no fault.
   *
   * @throws Error with what the tool would say, for a command that it refuses
   */
  meddle(...commands: readonly LinkCommand[]): void {
    for (const command of commands) {
      const refused = this.#carryOut(command);
      if (refused !== undefined) throw new Error(refused);
    }
  }

  addresses(device: string): Promise<ReadonlySet<string> | undefined> {
    const argv: Argv = this.#netlink ? ["netlink", "ip", "list"] : ["ip", "-oneline", "address", "show", "dev", device];
    return singleStep(this.faults, argv, () => {
      const addresses = this.#devices.get(device);
      return addresses && new Set(addresses);
    });
  }

  async change(commands: Iterable<LinkCommand>): Promise<void> {
    const argv: Argv = this.#netlink ? ["netlink", "ip"] : ["ip", "-batch", "-"];
    await execute(this.faults, argv, commands, (command, number) => {
      const refused = this.#carryOut(command);
      return refused === undefined ? undefined : { stop: `${refused}\nCommand failed -:${number}`, exitCode: 1 };
    });
  }

  #carryOut(command: LinkCommand): string | undefined {
    const { kind, device } = command;
    if (kind === "add-device") return this.#addDevice(device);
    if (!("address" in command)) return this.#devices.delete(device) ? undefined : `Cannot find device "${device}"`;
    const { address } = command;
    const addresses = this.#devices.get(device);
    if (addresses === undefined) return `Cannot find device "${device}"`;
    if (kind === "delete-address")
      return addresses.delete(address) ? undefined : "RTNETLINK answers: Cannot assign requested address";
    if (addresses.has(address)) return "RTNETLINK answers: File exists";
    addresses.add(address);
    return undefined;
  }

  #addDevice(name: string): string | undefined {
    if (this.#devices.has(name)) return "RTNETLINK answers: File exists";
    this.#devices.set(name, new Set());
    return undefined;
  }
}

/** What became of one command: taken; reported on stderr and skipped; or the end of the process. */
export type Outcome = undefined | { readonly skip: string } | { readonly stop: string; readonly exitCode: number };

/**
 * Does commands without a transaction, with the faults that were planned: killed after so many of them, or just when
 * all was done.
 *
 * @param take does one before it gets the next; their numbers begin with 1
 * @throws CommandError as the real client does: for a refused command, for skipped ones (exit code 0), and for kills
 */
export async function execute<Command>(
  faults: Faults,
  argv: Argv,
  commands: Iterable<Command>,
  take: (command: Command, number: number) => Outcome,
): Promise<void> {
  const fault = await faults.enter(argv);
  let left = fault?.kind === "kill" ? (fault.transactions ?? 0) : Number.POSITIVE_INFINITY;
  const skipped: string[] = [];
  let number = 0;
  for (const command of commands) {
    if (left-- <= 0) throw killed(argv);
    const outcome = take(command, ++number);
    if (outcome === undefined) continue;
    if ("stop" in outcome) throw ended(argv, outcome.exitCode, [...skipped, outcome.stop]);
    skipped.push(outcome.skip);
  }
  if (fault !== undefined) throw killed(argv);
  if (skipped.length > 0) throw ended(argv, 0, skipped);
}

function destinationKey(server: VirtualServerKey, { address, port }: DestinationKey): string {
  return `${renderServerKey(server)} ${socketText(address, port)}`;
}

function ended(argv: Argv, exitCode: number, stderr: readonly string[]): CommandError {
  return new CommandError({ argv, reason: "exit", exitCode, stderr: stderr.join("\n") });
}
