import { checkChainName, checkValue } from "../check.ts";
import { rawArgs } from "../options.ts";
import type { RawModule } from "../raw.ts";
import type { IPFamily } from "../values.ts";
import { renderWords } from "../words.ts";
import { type DnatTarget, dnat } from "./dnat.ts";
import type { TargetKind } from "./kind.ts";
import { type MarkTarget, setMark } from "./mark.ts";
import { type MasqueradeTarget, masquerade } from "./masquerade.ts";
import { isTargetName } from "./names.ts";
import { type RedirectTarget, redirect } from "./redirect.ts";
import { type RejectTarget, reject } from "./reject.ts";
import { accept, drop, returned, type VerdictTarget } from "./verdict.ts";

type TypedTarget =
  | DnatTarget
  | MarkTarget
  | MasqueradeTarget
  | RedirectTarget
  | RejectTarget
  | VerdictTarget<"accept">
  | VerdictTarget<"drop">
  | VerdictTarget<"return">;

/** A target of a rule: one of those that have a type of their own, or another one with its words. */
export type Target =
  | TypedTarget
  | { readonly kind: "jump" | "goto"; readonly chain: string }
  /** A target this package has no type for, kept word for word. */
  | { readonly kind: "unknown"; readonly name: string; readonly args: readonly string[] };

type Kinds = { readonly [Kind in TypedTarget["kind"]]: TargetKind<Extract<TypedTarget, { readonly kind: Kind }>> };

/** One row for each kind. */
const kinds: Kinds = { accept, dnat, drop, mark: setMark, masquerade, redirect, reject, return: returned };

interface Named {
  readonly kind: TargetKind<TypedTarget>;
  readonly options: ReadonlyMap<string, number>;
}

const named: ReadonlyMap<string, Named> = new Map(
  // Each reads what is of its own kind; which that is, its name says.
  Object.values(kinds).map((kind) => [
    kind.name,
    { kind: kind as unknown as TargetKind<TypedTarget>, options: new Map(Object.entries(kind.options)) },
  ]),
);

/** How many values each option of a target takes; undefined for a target without a type. */
export function targetOptions(name: string): ReadonlyMap<string, number> | undefined {
  return named.get(name)?.options;
}

/**
 * The target in its type, or word for word where the type can't say it. A name that is not one of the kernel's targets
 * is a chain's.
 *
 * @throws Problem for values that iptables refuses
 */
export function parseTarget(raw: RawModule, family: IPFamily): Target {
  return typedTarget(raw, family) ?? { kind: "unknown", name: raw.name, args: rawArgs(raw) };
}

function typedTarget(raw: RawModule, family: IPFamily): Target | undefined {
  if (raw.options.some((option) => option.negated)) return undefined;
  const found = named.get(raw.name);
  if (found !== undefined) return found.kind.parse(raw, family);
  return isTargetName(raw.name) || raw.options.length > 0 ? undefined : { kind: "jump", chain: raw.name };
}

/**
 * ` -j TARGET --option value`, with the leading space.
 *
 * @throws RuleTextError for values that could not be read back as the same
 */
export function renderTarget(target: Target): string {
  switch (target.kind) {
    case "jump":
      return ` -j ${checkChainName(target.chain)}`;
    case "goto":
      return ` -g ${checkChainName(target.chain)}`;
    case "unknown":
      return ` -j ${checkValue("target", target.name)}${renderWords(target.args)}`;
    default: {
      // The row of a kind writes targets of that kind, which the type system can't follow.
      const kind = kinds[target.kind] as unknown as TargetKind<TypedTarget>;
      return ` -j ${kind.name}${kind.render(target)}`;
    }
  }
}
