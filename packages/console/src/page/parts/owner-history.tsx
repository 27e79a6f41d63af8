import type { Ownership } from "@fairlead/core";
import type { ServiceAnswer } from "../../protocol/index.ts";
import { Owner } from "./badge.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";

/** Who served a service before: what this console has seen, and nothing from before it was started. */
export function OwnerHistory({ history: { since, changes } }: { readonly history: ServiceAnswer["owners"] }) {
  return (
    <section class="panel" aria-label="Owners before">
      <h2>Owners before</h2>
      {changes.length === 0 ? (
        <p class="quiet">Nothing has changed since this console was started at {timeText(since)}.</p>
      ) : (
        <>
          <p class="quiet">Since this console was started at {timeText(since)}; it knows nothing from before.</p>
          <Scroll label="Owners before">
            <table>
              <TableHead titles={["At", "Family", "Before", "Then", "Why"]} />
              <tbody>
                {changes.toReversed().map(({ at, family, before, after, why }) => (
                  <tr key={`${at} ${family}`}>
                    <th scope="row">{timeText(at)}</th>
                    <td>{family}</td>
                    <td>
                      <Known ownership={before} />
                    </td>
                    <td>
                      <Known ownership={after} />
                    </td>
                    <td>{why ?? "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </>
      )}
    </section>
  );
}

/** Without one the service was not there, or had no ClusterIP of the family. */
function Known({ ownership }: { readonly ownership: Ownership | undefined }) {
  return ownership === undefined ? <span class="quiet">no network's</span> : <Owner ownership={ownership} />;
}

function timeText(at: number): string {
  return new Date(at).toLocaleTimeString();
}
