import { errorText, fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type NodeState, parseNodeState } from "@fairlead/inspect";
import { CommandError, type Runner } from "@fairlead/kernel";
import type { HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { FORMAT, PATHS } from "./layout.ts";

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
    const { format, version } = index;
    if (format !== FORMAT) {
      throw new CommandFailure(
        `--sysdump=${file}: archive format ${format} is not supported (supported: ${FORMAT}); ` +
          `read it with fairlead ${stringOf(version) ?? "of the version that made it"}`,
      );
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

  /** @throws CommandFailure when there is none, or it is of another version */
  state(node: string): NodeState {
    const text = this.#files.get(PATHS.state(node));
    if (text === undefined) throw new CommandFailure(`--sysdump=${this.#file}: nothing of the kernel of ${node}`);
    try {
      return parseNodeState(text);
    } catch (error) {
      throw new CommandFailure(`--sysdump=${this.#file}: ${PATHS.state(node)}: ${errorText(error)}`, { cause: error });
    }
  }

  /** Answers with what the node's agent answered; the port decides nothing. */
  ask(node: string): (port: number, path: string) => Promise<HttpAnswer> {
    return async (_port, path) => {
      const text = this.#files.get(PATHS.page(node, path));
      return text === undefined ? { status: 404, text: "" } : { status: 200, text };
    };
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

/** An archive has no programs. */
export const NO_PROGRAMS: Runner = {
  run: (argv) => Promise.reject(new CommandError({ argv, reason: "not-found" })),
  // biome-ignore lint/correctness/useYield: it fails before it gives anything
  async *stream(argv) {
    throw new CommandError({ argv, reason: "not-found" });
  },
};
