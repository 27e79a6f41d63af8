/** `default/web:http`, and what the proxy's comments say before it. */
const NAMED =
  /--comment "?(?:masquerade traffic for |other traffic to )?([a-z0-9.-]+\/[a-z0-9.-]+(?::[a-zA-Z0-9.-]+)?)[" ]/;

/** The service that a rule is for, by its comment; undefined: for none, or for all. */
export function ownerOf(rule: string): string | undefined {
  return NAMED.exec(`${rule} `)?.[1];
}

/** The service that any of the rules names. */
export function ownerOfAny(rules: readonly string[]): string | undefined {
  for (const rule of rules) {
    const owner = ownerOf(rule);
    if (owner !== undefined) return owner;
  }
  return undefined;
}
