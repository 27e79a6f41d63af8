import type { LinkCommand } from "@fairlead/netfilter";
import type { LinksClient } from "../../links/client.ts";
import type { Argv } from "../../runner/runner.ts";
import { Faults, singleStep } from "../faults.ts";
import { execute, type Outcome } from "./outcome.ts";

export interface FakeLinksOptions {
  readonly faults?: Faults;
  /** Netlink is at hand: all calls are `netlink ip`, and start no process. Default false. */
  readonly netlink?: boolean;
}

/** Devices and their addresses in memory. */
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
    await execute(this.faults, this.#netlink ? ["netlink", "ip"] : ["ip", "-batch", "-"], commands, {
      take: (command, number) => this.#take(command, number),
    });
  }

  #take(command: LinkCommand, number: number): Outcome {
    const refused = this.#carryOut(command);
    return refused === undefined ? undefined : { stop: `${refused}\nCommand failed -:${number}`, exitCode: 1 };
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
