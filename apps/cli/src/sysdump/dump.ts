import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { CommandError, type Runner } from "@fairlead/kernel";
import type { HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { type RecordedRun, replayingRunner } from "../node/recorded-runs.ts";
import { FORMAT, PATHS, type RunEntry } from "./layout.ts";

/** The files of an archive, and what commands ask of a node, answered from them. */
export class Sysdump {
  readonly #files: ReadonlyMap<string, string>;
  readonly #file: string;
  /** Those of which anything is here. */
  readonly nodes: readonly string[];

  /**
   * @param file for messages
   * @throws CommandFailure for an archive of another form
   */
  constructor(file: string, files: ReadonlyMap<string, string>) {
    this.#file = file;
    this.#files = files;
    const index = fieldsOf(this.#json(PATHS.index));
    if (index["format"] !== FORMAT) {
      throw new CommandFailure(`--sysdump=${file}: its form is ${index["format"]}; this version reads form ${FORMAT}`);
    }
    this.nodes = itemsOf(index["nodes"]).flatMap((one) => {
      const { name, answered } = fieldsOf(one);
      return answered === true ? (stringOf(name) ?? []) : [];
    });
  }

  /** All objects, as manifests. */
  get objects(): Uint8Array {
    return Buffer.from(this.#files.get(PATHS.objects) ?? "[]");
  }

  /** Answers with what programs printed on that node; those that were not asked there are not installed here. */
  runner(node: string): Runner {
    const runs = itemsOf(this.#json(PATHS.runs(node))).flatMap((entry) => this.#runOf(node, entry as RunEntry));
    return replayingRunner(runs, NO_PROGRAMS);
  }

  /** Answers with what the node's agent answered; the port decides nothing. */
  ask(node: string): (port: number, path: string) => Promise<HttpAnswer> {
    return async (_port, path) => {
      const text = this.#files.get(PATHS.page(node, path));
      return text === undefined ? { status: 404, text: "" } : { status: 200, text };
    };
  }

  #runOf(node: string, entry: RunEntry): readonly RecordedRun[] {
    if (!("file" in entry)) return [entry];
    const stdout = this.#files.get(PATHS.run(node, entry.file));
    return stdout === undefined ? [] : [{ argv: entry.argv, stdout }];
  }

  #json(path: string): unknown {
    const text = this.#files.get(path);
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch (error) {
      throw new CommandFailure(`--sysdump=${this.#file}: ${path} is not JSON`, { cause: error });
    }
  }
}

const NO_PROGRAMS: Runner = {
  run: (argv) => Promise.reject(new CommandError({ argv, reason: "not-found" })),
  // biome-ignore lint/correctness/useYield: it fails before it gives anything
  async *stream(argv) {
    throw new CommandError({ argv, reason: "not-found" });
  },
};
