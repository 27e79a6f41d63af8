import type { Ownership } from "@fairlead/core";
import type { Tone, Verdict } from "../findings.ts";

const SIGNS: Readonly<Record<Tone, string>> = { good: "✓", warn: "▲", bad: "✕", plain: "·" };

/** A state: its color never says more than sign and words. */
export function Badge({ tone, text }: Verdict) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span>
      {text}
    </span>
  );
}

const OWNERS: Readonly<Record<Ownership, Verdict>> = {
  ours: { tone: "good", text: "ours" },
  mixed: { tone: "warn", text: "mixed" },
  foreign: { tone: "plain", text: "another network's" },
};

export function Owner({ ownership }: { readonly ownership: Ownership }) {
  return <Badge {...OWNERS[ownership]} />;
}
