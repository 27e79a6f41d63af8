import { useEffect, useState } from "preact/hooks";
import type { FateData, WhatIfAnswer } from "../../protocol.ts";
import { ask, type RequestState } from "../ask.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { TableHead } from "../parts/table-head.tsx";
import { Waiting } from "../parts/waiting.tsx";
import { serviceAddress } from "../router.ts";
import type { Store } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly query: URLSearchParams;
}

/** Which traffic a change would change. Nothing is applied to anything. */
export function WhatIfView({ store, query }: Props) {
  const [manifests, setManifests] = useState("");
  const [cidr, setCIDR] = useState(query.get("cidr") ?? "");
  const [asked, setAsked] = useState<RequestState<WhatIfAnswer> | undefined>();
  const compare = async () => {
    setAsked({ state: "asking" });
    setAsked(await ask<WhatIfAnswer>("api/what-if", { manifests, cidr }));
  };
  useEffect(() => {
    store.look([]);
    if (cidr !== "") void compare();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    void compare();
  };
  return (
    <>
      <div class="head">
        <h1>What if</h1>
        <span class="quiet">What would change for packets on {store.facts?.node}. Nothing is applied.</span>
      </div>
      <form onSubmit={submit}>
        <label>
          Services and EndpointSlices that come, or take the place of those of their names (YAML or JSON)
          <textarea value={manifests} onInput={(event) => setManifests(event.currentTarget.value)} spellcheck={false} />
        </label>
        <div class="tools">
          <label>
            A CIDR that would be another network's
            <input value={cidr} placeholder="10.88.0.0/16" onInput={(event) => setCIDR(event.currentTarget.value)} />
          </label>
          <button type="submit" class="first">
            Compare
          </button>
        </div>
      </form>
      {asked !== undefined &&
        (asked.state === "answered" ? <Changes answer={asked.answer} /> : <Waiting asked={asked} />)}
    </>
  );
}

function Changes({ answer }: { readonly answer: WhatIfAnswer }) {
  const { services, families, planAt, node } = answer;
  const changes = families.flatMap(({ family, traffic }) => traffic.changes.map((one) => ({ family, ...one })));
  return (
    <section class="panel" aria-label="What changes" aria-live="polite">
      <h2>
        {changes.length === 0 ? (
          <Badge tone="good" text="no traffic changes" />
        ) : (
          <Badge
            tone="warn"
            text={changes.length === 1 ? "1 kind of traffic changes" : `${changes.length} kinds of traffic change`}
          />
        )}{" "}
        <Age source={`plan of ${node}`} at={planAt} />
      </h2>
      {services.length > 0 && (
        <p>
          Planned differently:{" "}
          {services.map((service, at) => (
            <span key={service}>
              {at === 0 ? "" : ", "}
              <a href={serviceAddress(service)}>{service}</a>
            </span>
          ))}
        </p>
      )}
      {changes.length > 0 && (
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
      )}
    </section>
  );
}

function fateText(fate: FateData): string {
  if ("problem" in fate) return `unknown: ${fate.problem}`;
  const ways = Object.entries(fate.ways);
  if (ways.length === 1) return ways[0]?.[0] ?? "";
  return ways.map(([way, share]) => `${way} ${Number((share * 100).toFixed(1))} %`).join(", ");
}
