import type { Hook } from "../packet.ts";
import type { NftRuleContext } from "./rule-context.ts";

/** @throws TraceError where the kernel would not load a translation */
export function demandNat(place: NftRuleContext, name: string, hooks: readonly Hook[]): void {
  if (place.walk.stage?.isNat !== true) throw place.undecidable(`${name} is valid in chains of type nat only`);
  demandHook(place, name, hooks);
}

/** @throws TraceError where the kernel would not load the expression */
export function demandHook(place: NftRuleContext, name: string, hooks: readonly Hook[]): void {
  if (hooks.includes(place.walk.hook)) return;
  throw place.undecidable(`${name} is valid at ${hooks.join(", ")} only`);
}
