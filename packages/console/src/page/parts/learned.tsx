import { useState } from "preact/hooks";
import type { LearnedAnswer } from "../../protocol/index.ts";
import { useAnswer } from "../ask.ts";
import { addressOf } from "../router.ts";
import type { Store } from "../store.ts";
import { Age } from "./age.tsx";
import { NodeChoice } from "./node-choice.tsx";
import { Scroll } from "./scroll.tsx";
import { Stage, WHOSE } from "./stage.tsx";
import { TableHead } from "./table-head.tsx";
import { Waiting } from "./waiting.tsx";

type Networks = NonNullable<LearnedAnswer["networks"]>;

/** The CIDRs that the agent of a node has learned: each object, since when it counts, and why not. */
export function Learned({ store }: { readonly store: Store }) {
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
      {asked.state === "answered" ? <Report networks={asked.answer.networks} /> : <Waiting asked={asked} />}
    </section>
  );
}

/** What the objects say now, and what this console makes of it, as the agents do. */
export function LearnedHere({ networks, at }: { readonly networks: Networks; readonly at: number }) {
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
    <Scroll label="Learned CIDRs">
      <table>
        <TableHead titles={["CIDR", "Whose", "State", "From", "Since"]} />
        <tbody>
          {cidrs.map(({ cidr, side, source, objects, stage, why, since }) => (
            <tr key={`${side} ${source} ${cidr}`}>
              <th scope="row" class="mono">
                {cidr}
              </th>
              <td>{WHOSE[side]}</td>
              <td>
                <Stage stage={stage} /> {why}
                {stage === "held" && (
                  <>
                    . <a href={addressOf("what-if", [], { cidr })}>What would change</a>
                  </>
                )}
              </td>
              <td>
                {objects.join(", ")} <span class="quiet">{source}</span>
              </td>
              <td>{since === undefined ? "–" : new Date(since).toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
