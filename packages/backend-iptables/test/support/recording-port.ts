import { parseRestore, type TableCommands } from "@fairlead/netfilter";
import type { RulesPort } from "../../src/index.ts";

/** Passes everything on and keeps the payloads. */
export class RecordingPort implements RulesPort {
  readonly payloads: string[] = [];
  readonly glance?: NonNullable<RulesPort["glance"]>;
  readonly #port: RulesPort;

  constructor(port: RulesPort) {
    this.#port = port;
    if (port.glance !== undefined) this.glance = port.glance;
  }

  get family() {
    return this.#port.family;
  }

  get variant() {
    return this.#port.variant;
  }

  async restore(payload: Iterable<string> | AsyncIterable<string>): Promise<void> {
    let text = "";
    for await (const piece of payload) text += piece;
    this.payloads.push(text);
    await this.#port.restore([text]);
  }

  save: RulesPort["save"] = (table) => this.#port.save(table);
  saveLines: RulesPort["saveLines"] = (table) => this.#port.saveLines(table);
  chains: RulesPort["chains"] = (table) => this.#port.chains(table);
  texts: RulesPort["texts"] = (table, chains) => this.#port.texts(table, chains);
  list: RulesPort["list"] = (table, chain, number) => this.#port.list(table, chain, number);

  /** The payloads since the last time, parsed. */
  take(): TableCommands[][] {
    return this.payloads.splice(0).map((text) => parseRestore(text, { family: this.family }));
  }
}
