import { CommandError } from "../runner/command-error.ts";
import type { Input } from "../runner/runner.ts";
import { cutTransactions } from "./cut-transactions.ts";
import { IptablesError } from "./error.ts";
import { explain } from "./explain.ts";
import { KEPT, PayloadTail } from "./payload-tail.ts";

/**
 * How large a transaction may be. The nft variant sends a transaction as one netlink message and asks the kernel for
 * the room with SO_SNDBUFFORCE (iptables 1.8, nft.c), which works only in the initial user namespace. Elsewhere
 * net.core.wmem_default is the limit. How many rules fit depends on the tool's version, so a refused transaction halves
 * the size of all that follow.
 */
export class TransactionSize {
  /** Characters of commands. */
  #most = Number.POSITIVE_INFINITY;

  /**
   * Has a tool read a payload.
   *
   * @throws IptablesError for a CommandError of the tool; of kind "too-large": what follows is smaller, try again
   */
  async restore(payload: Input, run: (input: AsyncIterable<string>) => Promise<unknown>): Promise<void> {
    const tail = new PayloadTail();
    try {
      await run(tail.watch(this.#cut(typeof payload === "string" ? [payload] : payload)));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const explained = explain(error, tail);
      throw explained.kind === "too-large" ? this.#halve(explained, error, tail) : explained;
    }
  }

  #cut(payload: Exclude<Input, string>): Exclude<Input, string> {
    return this.#most === Number.POSITIVE_INFINITY ? payload : cutTransactions(payload, this.#most);
  }

  #halve({ message, line = 0 }: IptablesError, cause: CommandError, tail: PayloadTail): IptablesError {
    const commands = tail.transaction(line);
    if (commands?.length === 1) {
      const [text = ""] = commands;
      return new IptablesError("too-large", `${message}: the line "${text}" by itself`, { cause, line, text });
    }
    const size = commands?.reduce((sum, { length }) => sum + length + 1, 0) ?? KEPT;
    this.#most = Math.ceil(size / 2);
    const next = `from now on transactions have at most ${this.#most} characters`;
    const limit = "in a user namespace net.core.wmem_default is the limit";
    return new IptablesError("too-large", `${message}: it has ${size} characters; ${limit}; ${next}`, { cause, line });
  }
}
