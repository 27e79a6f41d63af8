import { socketText } from "@fairlead/base";
import type { Outcome } from "./outcome.ts";

/** Outcomes that only the host itself could distinguish, taken together. */
export interface Landing {
  /** What becomes of the packet there. */
  readonly verdict: Outcome["verdict"];
  /** `10.144.1.5:8080`, `[fd00::1]:80`; without a port where the protocol has none. */
  readonly destination: string;
  /** Whether DNAT, REDIRECT or a virtual server gave it another destination. */
  readonly translated: boolean;
  /** Whether MASQUERADE or SNAT gave it another source. */
  readonly masqueraded: boolean;
  /** The sum over its outcomes: 0 < probability ≤ 1. */
  readonly probability: number;
}

/** Where the packet may end and how probable each place is, in the order in which the places come up. */
export function landings(outcomes: Iterable<Outcome>): Landing[] {
  const found = new Map<string, Landing>();
  for (const outcome of outcomes) {
    const landing = landingOf(outcome);
    const { verdict, destination, translated, masqueraded } = landing;
    const key = [verdict, destination, translated, masqueraded].join(" ");
    const before = found.get(key)?.probability ?? 0;
    found.set(key, { ...landing, probability: before + landing.probability });
  }
  return [...found.values()];
}

function landingOf({ verdict, destination, translated, masqueraded, probability }: Outcome): Landing {
  const { address, port } = destination;
  const text = port === undefined ? address : socketText(address, port);
  return { verdict, destination: text, translated, masqueraded, probability };
}
