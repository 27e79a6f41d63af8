/** Which networks count, which objects say so, and which Services of others they hold. */

import type { OwnershipRow } from "@fairlead/intake";
import { useState } from "preact/hooks";
import type { LearnedAnswer, NetworksAnswer } from "../../protocol.ts";
import { Age, NodeChoice, Owner, Stage, Table, Waiting, WHOSE } from "../parts/common.tsx";
import { addressOf, serviceAddress } from "../router.ts";
import { type Store, useAnswer } from "../store.ts";

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
          <Table
            label="CIDRs"
            rows={cidrs}
            keyOf={({ cidr, whose }) => `${whose} ${cidr}`}
            columns={[
              ["CIDR", ({ cidr }) => cidr, "mono"],
              ["Whose", ({ whose }) => <Owner ownership={whose === "ours" ? "ours" : "foreign"} />],
              ["From", ({ from }) => from, "mono"],
            ]}
          />
        )}
      </div>
      {learned !== undefined && <LearnedHere networks={learned} at={planAt} />}
      {store.facts?.kernels === true && <Learned store={store} />}
      {suggestedCIDRs.length > 0 && (
        <div class="panel">
          <h2>These look like another network's</h2>
          <Table
            label="CIDRs"
            rows={suggestedCIDRs}
            keyOf={({ cidr }) => cidr}
            columns={[
              ["CIDR", ({ cidr }) => cidr, "mono"],
              ["Endpoints", ({ endpoints }) => endpoints, "number"],
              ["Services", ({ services: count }) => count, "number"],
              ["What if", ({ cidr }) => <a href={addressOf("what-if", [], { cidr })}>which traffic would change</a>],
            ]}
          />
        </div>
      )}
      <div class="panel">
        <h2>Services of other networks, and mixed ones</h2>
        {others.length === 0 ? <p class="quiet">There is none.</p> : <OthersServices rows={others} />}
      </div>
    </>
  );
}

type Networks = NonNullable<LearnedAnswer["networks"]>;

/** The CIDRs that the agent of a node has learned: each object, since when it counts, and why not. */
function Learned({ store }: { readonly store: Store }) {
  const [node, setNode] = useState(store.facts?.node ?? "");
  const [times, setTimes] = useState(0);
  const asked = useAnswer<LearnedAnswer>(`api/networks/learned?${new URLSearchParams({ node })}`, times);
  return (
    <section class="panel" aria-label="Learned from objects">
      <h2>
        Learned from objects {asked.state === "answered" && <Age source={`agent of ${node}`} at={asked.answer.at} />}
      </h2>
      <div class="tools">
        <NodeChoice label="Learned by the agent of" store={store} node={node} onNode={setNode} />
        <button type="button" onClick={() => setTimes(times + 1)}>
          Ask again
        </button>
      </div>
      {asked.state === "answered" ? (
        <Report networks={asked.answer.networks} />
      ) : (
        <Waiting asked={asked} of={`the agent of ${node}`} />
      )}
    </section>
  );
}

/** What the objects say now, and what this console makes of it, as the agents do. */
function LearnedHere({ networks, at }: { readonly networks: Networks; readonly at: number }) {
  return (
    <section class="panel" aria-label="What the objects say">
      <h2>
        What the objects say <Age source="as every agent learns it" at={at} />
      </h2>
      <Report networks={networks} />
    </section>
  );
}

function Report({ networks }: { readonly networks: Networks | undefined }) {
  if (networks === undefined) return <p class="quiet">This agent learns no CIDR: what counts is what is configured.</p>;
  const { sources, cidrs, conflicts } = networks;
  const unread = sources.filter(({ state }) => state === "forbidden" || state === "unreachable");
  return (
    <>
      {unread.map(({ source, state }) => (
        <p class="notice warn" key={source}>
          {source}: {state}
        </p>
      ))}
      {cidrs.some(({ stage }) => stage === "held") && (
        <p class="notice warn">
          What is held back lies in a CIDR of ours. It takes effect on all nodes once an operator accepts it.
        </p>
      )}
      {cidrs.length === 0 ? <p class="quiet">No object says one.</p> : <CIDRs cidrs={cidrs} />}
      {conflicts.length > 0 && (
        <>
          <h3>CIDRs of both sides that lie in each other: the longer prefix decides</h3>
          <ul>
            {conflicts.map(({ cidr, side, within }) => (
              <li key={`${side} ${cidr}`}>
                <span class="mono">{cidr}</span>, {WHOSE[side]}, lies in <span class="mono">{within}</span>,{" "}
                {WHOSE[side === "own" ? "excluded" : "own"]}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function CIDRs({ cidrs }: Pick<Networks, "cidrs">) {
  return (
    <Table
      label="Learned CIDRs"
      rows={cidrs}
      keyOf={({ cidr, side, source }) => `${side} ${source} ${cidr}`}
      columns={[
        ["CIDR", ({ cidr }) => cidr, "mono"],
        ["Whose", ({ side }) => WHOSE[side]],
        ["State", LearnedState],
        ["From", ({ objects, source }) => [objects.join(", "), " ", <span class="quiet">{source}</span>]],
        ["Since", ({ since }) => (since === undefined ? "–" : new Date(since).toLocaleString())],
      ]}
    />
  );
}

function LearnedState({ cidr, stage, why }: Networks["cidrs"][number]) {
  return (
    <>
      <Stage stage={stage} /> {why}
      {stage === "held" && (
        <>
          . <a href={addressOf("what-if", [], { cidr })}>What would change</a>
        </>
      )}
    </>
  );
}

/** More rows than anybody reads: the list of services filters. */
const MOST = 300;

/** Services that another network serves, by itself or with us, each with why. */
function OthersServices({ rows }: { readonly rows: readonly OwnershipRow[] }) {
  return (
    <>
      <Table
        label="Services of other networks"
        rows={rows.slice(0, MOST)}
        keyOf={({ service, ipFamily }) => `${service} ${ipFamily}`}
        columns={[
          [
            "Service",
            ({ service, ipFamily }) => [
              <a href={serviceAddress(service)}>{service}</a>,
              " ",
              <span class="quiet">{ipFamily}</span>,
            ],
          ],
          ["Owner", ({ ownership }) => <Owner ownership={ownership} />],
          [
            "Why",
            ({ why, learnedFrom = [] }) =>
              [why, ...learnedFrom.map(({ cidr, objects }) => `${cidr}: ${objects.join(", ")}`)].join("; "),
          ],
          ["Our endpoints", ({ ownEndpoints }) => ownEndpoints, "number"],
          ["Others'", ({ excludedEndpoints }) => excludedEndpoints, "number"],
        ]}
      />
      {rows.length > MOST && (
        <p class="quiet">
          and {rows.length - MOST} more: <a href="#/services?owner=foreign">the list of services</a> has them
        </p>
      )}
    </>
  );
}
