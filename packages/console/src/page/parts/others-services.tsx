import type { OwnershipRow } from "@fairlead/intake";
import { serviceAddress } from "../router.ts";
import { Owner } from "./badge.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";

/** More rows than anybody reads: the list of services filters. */
const MOST = 300;

/** Services that another network serves, alone or with us, each with why. */
export function OthersServices({ rows }: { readonly rows: readonly OwnershipRow[] }) {
  return (
    <>
      <Scroll label="Services of other networks">
        <table>
          <TableHead titles={["Service", "Owner", "Why"]} numbers={["Our endpoints", "Others'"]} />
          <tbody>
            {rows
              .slice(0, MOST)
              .map(({ service, ipFamily, ownership, why, learnedFrom = [], ownEndpoints, excludedEndpoints }) => (
                <tr key={`${service} ${ipFamily}`}>
                  <th scope="row">
                    <a href={serviceAddress(service)}>{service}</a> <span class="quiet">{ipFamily}</span>
                  </th>
                  <td>
                    <Owner ownership={ownership} />
                  </td>
                  <td>
                    {[why, ...learnedFrom.map(({ cidr, objects }) => `${cidr}: ${objects.join(", ")}`)].join("; ")}
                  </td>
                  <td class="number">{ownEndpoints}</td>
                  <td class="number">{excludedEndpoints}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </Scroll>
      {rows.length > MOST && (
        <p class="quiet">
          and {rows.length - MOST} more: <a href="#/services?owner=foreign">the list of services</a> has them
        </p>
      )}
    </>
  );
}
