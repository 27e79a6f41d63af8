import type { Difference } from "../findings.ts";

const WORDS = { missing: "missing", extra: "too much", different: "different", unknown: "unknown" } as const;
/** Findings of one service that are shown. */
const MOST = 20;

/** What of a service is not in the kernels as it should be: each rule by name. */
export function Findings({ differences }: { readonly differences: readonly Difference[] }) {
  return differences.map(({ node, family, service, kind, findings }) => (
    <div key={`${node} ${family} ${service}`}>
      <span class="badge bad">
        <span aria-hidden="true">✕</span>
        {kind} on {node}, {family}
        {service === undefined ? "" : `: ${service}`}
      </span>
      <ul class="findings">
        {findings.slice(0, MOST).map(({ kind: sort, where, what }) => (
          <li key={`${sort} ${where} ${what}`}>
            {WORDS[sort]} in {where}: <span class="rule">{what}</span>
          </li>
        ))}
        {findings.length > MOST && <li>and {findings.length - MOST} more</li>}
      </ul>
    </div>
  ));
}
