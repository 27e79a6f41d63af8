/** What of the kernel is not as it should be. */
export interface Finding {
  /**
   * missing: it should be there; extra: it should not; different: something else is in its place; unknown: what becomes
   * of packets depends on what cannot be decided here.
   */
  readonly kind: "missing" | "extra" | "different" | "unknown";
  /** `namespace/name:port`, as comments and plans name it; absent: it belongs to no single service. */
  readonly service?: string;
  /** The object that it is about: `nat KUBE-SERVICES`, `ipset KUBE-CLUSTER-IP`, `virtual server TCP 10.96.0.1:443`. */
  readonly where: string;
  /** The rule, member or setting, as the tools print it. */
  readonly what: string;
  /** It comes of others' rules, which a proxy neither wants nor hinders: a note, and no difference. */
  readonly others?: true;
}

/** All findings about one service, and what they come to. */
export interface ServiceReport {
  /** Absent: what all services share. */
  readonly service?: string;
  /** missing: nothing of it is there; extra: nothing of it should be. */
  readonly kind: "missing" | "extra" | "different";
  readonly findings: readonly Finding[];
}

/**
 * Findings by service, in the order of names; what all services share comes first.
 *
 * @param known the services that should be there, `namespace/name:port`
 * @param present those of which the kernel has anything
 */
export function byService(
  findings: readonly Finding[],
  known: ReadonlySet<string>,
  present: ReadonlySet<string>,
): readonly ServiceReport[] {
  const groups = Map.groupBy(findings, ({ service }) => service ?? "");
  const names = [...groups.keys()].sort();
  return names.map((name) => {
    const own = groups.get(name) ?? [];
    if (name === "") return { kind: "different", findings: own };
    const kind = known.has(name) ? (present.has(name) ? "different" : "missing") : "extra";
    return { service: name, kind, findings: own };
  });
}
