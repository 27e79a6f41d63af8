import type { NetworksAnswer } from "../../protocol/index.ts";
import { useAnswer } from "../ask.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { Learned, LearnedHere } from "../parts/learned.tsx";
import { OthersServices } from "../parts/others-services.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { TableHead } from "../parts/table-head.tsx";
import { Waiting } from "../parts/waiting.tsx";
import { addressOf } from "../router.ts";
import type { Store } from "../store.ts";

/** Whose pods are where, and which services that makes another network's. */
export function NetworksView({ store }: { readonly store: Store }) {
  const asked = useAnswer<NetworksAnswer>("api/networks", store.objectsAt);
  if (asked.state !== "answered") return <Waiting title="Networks" asked={asked} />;
  const { cidrs, learned, services, suggestedCIDRs, planAt } = asked.answer;
  const others = services.filter(({ ownership }) => ownership !== "ours");
  return (
    <>
      <div class="head">
        <h1>Networks</h1>
        <Age source={`plan of ${store.facts?.node}`} at={planAt} />
      </div>
      <div class="panel">
        <h2>CIDRs of pods</h2>
        {cidrs.length === 0 ? (
          <p class="quiet">None is configured: every service is ours.</p>
        ) : (
          <Scroll label="CIDRs">
            <table>
              <TableHead titles={["CIDR", "Whose", "From"]} />
              <tbody>
                {cidrs.map(({ cidr, whose, from }) => (
                  <tr key={`${whose} ${cidr}`}>
                    <th scope="row" class="mono">
                      {cidr}
                    </th>
                    <td>
                      <Badge
                        tone={whose === "ours" ? "good" : "plain"}
                        text={whose === "ours" ? "ours" : "another network's"}
                      />
                    </td>
                    <td class="mono">{from}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </div>
      {learned !== undefined && <LearnedHere networks={learned} at={planAt} />}
      {store.facts?.kernels === true && <Learned store={store} />}
      {suggestedCIDRs.length > 0 && (
        <div class="panel">
          <h2>These look like another network's</h2>
          <Scroll label="CIDRs">
            <table>
              <thead>
                <tr>
                  <th scope="col">CIDR</th>
                  <th scope="col" class="number">
                    Endpoints
                  </th>
                  <th scope="col" class="number">
                    Services
                  </th>
                  <th scope="col">
                    <span class="quiet">What if</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {suggestedCIDRs.map(({ cidr, endpoints, services: count }) => (
                  <tr key={cidr}>
                    <th scope="row" class="mono">
                      {cidr}
                    </th>
                    <td class="number">{endpoints}</td>
                    <td class="number">{count}</td>
                    <td>
                      <a href={addressOf("what-if", [], { cidr })}>which traffic would change</a>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </div>
      )}
      <div class="panel">
        <h2>Services of other networks, and mixed ones</h2>
        {others.length === 0 ? <p class="quiet">There is none.</p> : <OthersServices rows={others} />}
      </div>
    </>
  );
}
