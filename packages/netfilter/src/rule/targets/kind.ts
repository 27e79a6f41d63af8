import type { RawModule } from "../raw.ts";
import type { IPFamily } from "../values.ts";

/** A kind of target, all of it: how its text is read, checked and written. What it does to a packet is the tracer's. */
export interface TargetKind<T extends { readonly kind: string }> {
  /** What stands after `-j`. */
  readonly name: string;
  /** Every option that it has, and how many values each takes. */
  readonly options: Readonly<Record<string, number>>;
  /**
   * @param raw has no negated option
   * @returns undefined when it has options that the type can't say: it is kept word for word then
   * @throws Problem for values that iptables refuses
   */
  parse(raw: RawModule, family: IPFamily): T | undefined;
  /**
   * The options as iptables-save prints them, each with a leading space.
   *
   * @throws RuleTextError for values that could not be read back as the same
   */
  render(target: T): string;
}
