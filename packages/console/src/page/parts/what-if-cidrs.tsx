import type { WhatIfNetworks } from "../../protocol/index.ts";
import { Scroll } from "./scroll.tsx";
import { Stage, WHOSE } from "./stage.tsx";
import { TableHead } from "./table-head.tsx";

/** What would become of learned CIDRs: which count, which are held or refused, and why. */
export function WhatIfCIDRs({ networks: { cidrs, problems, unread } }: { readonly networks: WhatIfNetworks }) {
  return (
    <>
      {[...problems, ...unread.map((one) => `${one}; what it says is on neither side of this comparison`)].map(
        (text) => (
          <p class="notice warn" key={text}>
            {text}
          </p>
        ),
      )}
      {cidrs.length === 0 ? (
        <p>The learned CIDRs stay as they are.</p>
      ) : (
        <Scroll label="Learned CIDRs that change">
          <table>
            <TableHead titles={["CIDR", "Whose", "Now", "Then", "From"]} />
            <tbody>
              {cidrs.map(({ cidr, side, source, objects, before, after, why }) => (
                <tr key={`${side} ${source} ${cidr}`}>
                  <th scope="row" class="mono">
                    {cidr}
                  </th>
                  <td>{WHOSE[side]}</td>
                  <td>{before === undefined ? "not there" : <Stage stage={before} />}</td>
                  <td>
                    {after === undefined ? "gone" : <Stage stage={after} />} {why}
                  </td>
                  <td>
                    {objects.join(", ")} <span class="quiet">{source}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}
