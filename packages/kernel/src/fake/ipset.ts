/**
 * ipset in memory, line by line. The tool collects additions to one set, and loses those before a line that it refuses:
 * here they count.
 */

import {
  DEFAULT_MAX_ELEMENTS,
  type RefusedCommand,
  RefusedCommands,
  renderSetCommand,
  type SetCommand,
  type SetState,
} from "@fairlead/netfilter";
import type { IpsetClient } from "../ipset.ts";
import type { Argv } from "../runner.ts";
import { Faults, singleStep } from "./faults.ts";
import { execute, type Outcome } from "./ipvs.ts";

/** The tool and the kernel that the fake stands for. */
export interface FakeIpsetOptions {
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** Whether rules name a set, so that it can't be destroyed. Default: none do. */
  readonly inUse?: (name: string) => boolean;
  /** Netlink is at hand: calls that change only members are `netlink ipset`, and start no process. Default false. */
  readonly netlink?: boolean;
  /** How many members a set has room for. Default as ipset's. */
  readonly maxElements?: number;
}

interface FakeSet extends SetState {
  readonly members: Set<string>;
  readonly maxElements?: number;
}

/** The ipsets of the kernel in memory. Given to a `FakeIptables` as `sets`, rules may name those that are here. */
export class FakeIpset implements IpsetClient {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #inUse: (name: string) => boolean;
  readonly #netlink: boolean;
  readonly #maxElements: number;
  readonly #sets = new Map<string, FakeSet>();

  constructor(options: FakeIpsetOptions = {}) {
    this.faults = options.faults ?? new Faults();
    this.#inUse = options.inUse ?? (() => false);
    this.#netlink = options.netlink ?? false;
    this.#maxElements = options.maxElements ?? DEFAULT_MAX_ELEMENTS;
  }

  /** Whether there is a set of this name. */
  has(name: string): boolean {
    return this.#sets.has(name);
  }

  /** The sets as they are now, without a call; in the order of their making. */
  sets(): SetState[] {
    return [...this.#sets.values()].map((set) => ({ ...set, members: new Set(set.members) }));
  }

  async *save(names?: Iterable<string>): AsyncGenerator<SetState, void, void> {
    const wanted = names && new Set(names);
    const argv: Argv = this.#netlink && wanted !== undefined ? ["netlink", "ipset", "list"] : ["ipset", "save"];
    const sets = await singleStep(this.faults, argv, () => this.sets());
    yield* sets.filter(({ name }) => wanted === undefined || wanted.has(name));
  }

  async change(commands: readonly SetCommand[]): Promise<void> {
    const byTool = (some: readonly SetCommand[]) =>
      execute(this.faults, ["ipset", "-exist", "restore"], some, (command, number): Outcome => {
        const refused = this.#check(command) ?? this.#carryOut(command);
        if (refused === undefined) return undefined;
        return { stop: `ipset v7.17: Error in line ${number}: ${refused}`, exitCode: 1 };
      });
    if (!this.#netlink) return byTool(commands);
    if (!commands.every((command) => "member" in command)) {
      // As the client does: the tool stops at the first line that it refuses.
      return byTool(commands).catch(async (error: unknown) => {
        const members = commands.filter((command) => "member" in command);
        if (members.length === 0) throw error;
        await byTool(commands.filter((command) => !("member" in command)));
        return this.change(members);
      });
    }
    // Each member is a message of its own there, and those after a refused one are carried out.
    const refused: RefusedCommand<SetCommand>[] = [];
    await execute(this.faults, ["netlink", "ipset"], commands, (command): Outcome => {
      const reason = this.#check(command) ?? this.#carryOut(command);
      if (reason !== undefined) refused.push({ command, text: `ipset: ${renderSetCommand(command)}: ${reason}` });
      return undefined;
    });
    if (refused.length > 0) throw new RefusedCommands(refused);
  }

  /**
   * What another process does with `ipset -exist restore`: no call of ours, no fault.
   *
   * @throws Error with what the tool would say, for a command that it refuses
   */
  meddle(...commands: readonly SetCommand[]): void {
    for (const command of commands) {
      const refused = this.#check(command) ?? this.#carryOut(command);
      if (refused !== undefined) throw new Error(refused);
    }
  }

  /** What the tool sees by itself, before it sends anything. */
  #check(command: SetCommand): string | undefined {
    if (!("member" in command)) return undefined;
    const set = this.#sets.get(command.set);
    if (set === undefined) return "The set with the given name does not exist";
    return isMember(set.type, command.member) ? undefined : `Syntax error: cannot parse ${command.member}`;
  }

  #carryOut(command: SetCommand): string | undefined {
    if (command.kind === "create") return this.#create(command);
    const set = this.#sets.get(command.set);
    if (set === undefined) return command.kind === "destroy" ? undefined : "The set with the given name does not exist";
    switch (command.kind) {
      case "add":
        if (set.members.has(command.member)) return undefined;
        if (set.members.size >= (set.maxElements ?? this.#maxElements)) return "Hash is full, cannot add more elements";
        set.members.add(command.member);
        return undefined;
      case "del":
        set.members.delete(command.member);
        return undefined;
      case "flush":
        set.members.clear();
        return undefined;
      case "destroy":
        if (this.#inUse(command.set)) return "Set cannot be destroyed: it is in use by a kernel component";
        this.#sets.delete(command.set);
        return undefined;
    }
  }

  #create({ set }: Extract<SetCommand, { kind: "create" }>): string | undefined {
    const present = this.#sets.get(set.name);
    if (present === undefined) this.#sets.set(set.name, { ...set, members: new Set() });
    else if (present.type !== set.type) return "Set cannot be created: set with the same name already exists";
    return undefined;
  }
}

const PARTS: Readonly<Record<string, RegExp>> = {
  "hash:ip": /^[0-9a-f.:]+$/,
  "hash:ip,port": /^[0-9a-f.:]+,(?:tcp|udp|sctp):\d{1,5}$/,
  "hash:ip,port,ip": /^[0-9a-f.:]+,(?:tcp|udp|sctp):\d{1,5},[0-9a-f.:]+$/,
  // ipset refuses a network of length 0.
  "hash:ip,port,net": /^[0-9a-f.:]+,(?:tcp|udp|sctp):\d{1,5},[0-9a-f.:]+(?:\/[1-9]\d{0,2})?$/,
  "bitmap:port": /^\d{1,5}$/,
};

function isMember(type: string, member: string): boolean {
  return PARTS[type]?.test(member) ?? true;
}
