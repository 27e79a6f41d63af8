import type { AgentStart } from "../node.ts";

/**
 * How the agents of a DaemonSet are started: all of them in the same way. Who wants another one changes it for all, and
 * whoever asks for the same meanwhile waits for that.
 */
export class SharedStart {
  readonly #apply: (how: AgentStart) => Promise<void>;
  #current: string | undefined;
  #change: Promise<void> = Promise.resolve();
  #changing = 0;

  /** @param apply resolves when every agent is started so */
  constructor(apply: (how: AgentStart) => Promise<void>) {
    this.#apply = apply;
  }

  /** Applies it, also where it is so already. */
  apply(how: AgentStart): Promise<void> {
    this.#current = startKey(how);
    this.#changing += 1;
    this.#change = this.#change.catch(() => {}).then(() => this.#carryOut(how));
    return this.#change;
  }

  async #carryOut(how: AgentStart): Promise<void> {
    try {
      await this.#apply(how);
    } catch (error) {
      // Nobody knows how far it came.
      this.#current = undefined;
      throw error;
    } finally {
      this.#changing -= 1;
    }
  }

  /** @returns false: it was so before, and nothing was done */
  async change(how: AgentStart): Promise<boolean> {
    if (this.#current !== startKey(how)) await this.apply(how);
    else if (this.#changing > 0) await this.#change;
    else return false;
    return true;
  }
}

function startKey({ learns = false, memory = "", flags = [] }: AgentStart): string {
  return JSON.stringify([learns, memory, flags]);
}
