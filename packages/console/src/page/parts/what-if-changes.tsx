import type { FateData, OwnerMove, WhatIfAnswer } from "../../protocol/index.ts";
import { serviceAddress } from "../router.ts";
import { Age } from "./age.tsx";
import { Badge, Owner } from "./badge.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";
import { WhatIfCIDRs } from "./what-if-cidrs.tsx";

/** More rows than anybody reads. */
const MOST = 200;

/** What a change would bring about: CIDRs that would be held or refused, services that change hands, traffic. */
export function WhatIfChanges({ answer }: { readonly answer: WhatIfAnswer }) {
  const { services, owners, networks, families, planAt, node } = answer;
  return (
    <section class="panel" aria-label="What changes" aria-live="polite">
      <h2>
        <Age source={`plan of ${node}`} at={planAt} />
      </h2>
      {networks !== undefined && <WhatIfCIDRs networks={networks} />}
      <Owners owners={owners} />
      {services.length > 0 && (
        <p>
          Planned differently:{" "}
          {services.slice(0, MOST).map((service, at) => (
            <span key={service}>
              {at === 0 ? "" : ", "}
              <a href={serviceAddress(service)}>{service}</a>
            </span>
          ))}
          {services.length > MOST && `, and ${services.length - MOST} more`}
        </p>
      )}
      {families === undefined ? (
        <p>
          {services.length} services are planned differently. That is more than are compared packet by packet here;
          <code class="rule"> fairlead diff</code> compares them.
        </p>
      ) : (
        <TrafficChanges families={families} />
      )}
    </section>
  );
}

function Owners({ owners }: { readonly owners: readonly OwnerMove[] }) {
  if (owners.length === 0) {
    return (
      <h3>
        <Badge tone="good" text="no service changes hands" />
      </h3>
    );
  }
  return (
    <>
      <h3>
        <Badge
          tone="warn"
          text={owners.length === 1 ? "1 service changes hands" : `${owners.length} services change hands`}
        />
      </h3>
      <Scroll label="Services that change hands">
        <table>
          <TableHead titles={["Service", "Family", "Now", "Then", "Why"]} />
          <tbody>
            {owners.slice(0, MOST).map(({ service, family, before, after, why }) => (
              <tr key={`${service} ${family}`}>
                <th scope="row">
                  <a href={serviceAddress(service)}>{service}</a>
                </th>
                <td>{family}</td>
                <td>
                  <Owner ownership={before} />
                </td>
                <td>
                  <Owner ownership={after} />
                </td>
                <td>{why}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {owners.length > MOST && <p class="quiet">and {owners.length - MOST} more</p>}
    </>
  );
}

function TrafficChanges({ families }: { readonly families: NonNullable<WhatIfAnswer["families"]> }) {
  const changes = families.flatMap(({ family, traffic }) => traffic.changes.map((one) => ({ family, ...one })));
  if (changes.length === 0) {
    return (
      <h3>
        <Badge tone="good" text="no traffic changes" />
      </h3>
    );
  }
  return (
    <>
      <h3>
        <Badge
          tone="warn"
          text={changes.length === 1 ? "1 kind of traffic changes" : `${changes.length} kinds of traffic change`}
        />
      </h3>
      <Scroll label="Traffic that changes">
        <table>
          <TableHead titles={["To", "From", "Now", "Then"]} />
          <tbody>
            {changes.map(({ family, destination, from, before, after }) => (
              <tr key={`${family} ${destination} ${from.join()}`}>
                <th scope="row" class="mono">
                  {destination}
                </th>
                <td>{from.join(", ")}</td>
                <td class="mono">{fateText(before)}</td>
                <td class="mono">{fateText(after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function fateText(fate: FateData): string {
  if ("problem" in fate) return `unknown: ${fate.problem}`;
  const ways = Object.entries(fate.ways);
  if (ways.length === 1) return ways[0]?.[0] ?? "";
  return ways.map(([way, share]) => `${way} ${Number((share * 100).toFixed(1))} %`).join(", ");
}
