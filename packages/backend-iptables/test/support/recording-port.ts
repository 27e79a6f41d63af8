import { parseRestore, type TableCommands } from "@fairlead/netfilter";
import type { IptablesPort } from "../../src/index.ts";

/** Passes everything on and keeps the payloads. */
export class RecordingPort implements IptablesPort {
  readonly payloads: string[] = [];
  readonly #port: IptablesPort;

  constructor(port: IptablesPort) {
    this.#port = port;
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

  save: IptablesPort["save"] = (table) => this.#port.save(table);
  saveLines: IptablesPort["saveLines"] = (table) => this.#port.saveLines(table);
  chains: IptablesPort["chains"] = (table) => this.#port.chains(table);
  texts: IptablesPort["texts"] = (table, asked) => this.#port.texts(table, asked);
  list: IptablesPort["list"] = (table, chain, number) => this.#port.list(table, chain, number);

  /** The payloads since the last time, parsed. */
  take(): TableCommands[][] {
    return this.payloads.splice(0).map((text) => parseRestore(text, { family: this.family }));
  }
}
