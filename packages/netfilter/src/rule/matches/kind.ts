import type { RawModule } from "../raw.ts";
import type { IPFamily } from "../values.ts";

/**
 * A kind of match, all of it: which modules of iptables it stands for, how their text is read, checked and written. Two
 * are compared by their text. What it asks of a packet is the tracer's.
 */
export interface MatchKind<M extends { readonly kind: string }> {
  /** What stands after `-m`. */
  readonly modules: readonly string[];
  /** Every option that the modules have, and how many values it takes; those that the type can't say among them. */
  readonly options: Readonly<Record<string, number>>;
  /**
   * @returns undefined when it has options that the type can't say: it is kept word for word then
   * @throws Problem for values that iptables refuses
   */
  parse(raw: RawModule, family: IPFamily): M | undefined;
  /**
   * ` -m module --option value`, with the leading space, as iptables-save prints it.
   *
   * @throws RuleTextError for values that could not be read back as the same
   */
  render(match: M): string;
}
