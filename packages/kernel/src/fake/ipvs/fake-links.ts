import type { LinksClient } from "../../links/client.ts";
import type { Input } from "../../runner/runner.ts";
import { Faults, singleStep } from "../faults.ts";
import { type LineOutcome, runLineTool } from "./outcome.ts";

/** Devices and their addresses in memory. */
export class FakeLinks implements LinksClient {
  readonly faults: Faults;
  readonly #devices = new Map<string, Set<string>>();

  constructor(faults = new Faults()) {
    this.faults = faults;
  }

  /** The addresses of a device as they are now, without a call. */
  device(name: string): ReadonlySet<string> | undefined {
    return this.#devices.get(name);
  }

  /** What another process does with `ip -batch`: no call of ours, no fault. */
  meddle(...commands: readonly string[]): void {
    for (const command of commands) {
      const refused = this.#take(command, 1);
      if (refused !== undefined && "stop" in refused) throw new Error(refused.stop);
    }
  }

  addresses(device: string): Promise<ReadonlySet<string> | undefined> {
    return singleStep(this.faults, ["ip", "-oneline", "address", "show", "dev", device], () => {
      const addresses = this.#devices.get(device);
      return addresses && new Set(addresses);
    });
  }

  async batch(payload: Input): Promise<void> {
    await runLineTool(this.faults, ["ip", "-batch", "-"], payload, {
      take: (line, number) => this.#take(line, number),
    });
  }

  #take(line: string, number: number): LineOutcome {
    const refused = line === "" ? undefined : this.#carryOut(line);
    return refused === undefined ? undefined : { stop: `${refused}\nCommand failed -:${number}`, exitCode: 1 };
  }

  #carryOut(line: string): string | undefined {
    const [, add] = /^link add dev (\S+) type dummy$/.exec(line) ?? [];
    if (add !== undefined) return this.#addDevice(add);
    const [, gone] = /^link del dev (\S+)$/.exec(line) ?? [];
    if (gone !== undefined) return this.#devices.delete(gone) ? undefined : `Cannot find device "${gone}"`;
    const [, change, address = "", device = ""] = /^addr (add|del) (\S+)\/(?:32|128) dev (\S+)$/.exec(line) ?? [];
    if (change === undefined) return `Object "${line.split(" ")[0]}" is unknown, try "ip help".`;
    const addresses = this.#devices.get(device);
    if (addresses === undefined) return `Cannot find device "${device}"`;
    if (change === "del")
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
