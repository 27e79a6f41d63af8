import type { Diagnosis } from "@fairlead/inspect";
import { useEffect, useState } from "preact/hooks";
import type { DoctorAnswer } from "../../protocol.ts";
import type { Tone, Verdict } from "../findings.ts";
import { Age, Badge, NodeChoice, Table, Waiting } from "../parts/common.tsx";
import { addressOf, go } from "../router.ts";
import { type Store, useAnswer } from "../store.ts";

/** As many nodes are looked at without being asked for; any other one can be chosen. */
const MOST_NODES = 6;

/** What keeps a service proxy on each node from working, and what to do. */
export function DoctorView({ store, query }: { readonly store: Store; readonly query: URLSearchParams }) {
  const { facts } = store;
  const [times, setTimes] = useState(0);
  useEffect(() => store.look([]), [store]);
  const chosen = query.get("node") ?? "";
  const all = [...store.nodes.keys()];
  const nodes = chosen === "" ? all.slice(0, MOST_NODES) : [chosen];
  return (
    <>
      <div class="head">
        <h1>Doctor</h1>
        {chosen === "" && all.length > nodes.length && (
          <span class="quiet">
            {nodes.length} of {all.length} nodes
          </span>
        )}
      </div>
      {facts?.kernels === true ? (
        <>
          <div class="tools">
            <NodeChoice
              label="Node"
              store={store}
              node={chosen}
              all={all.length > MOST_NODES ? `the first ${MOST_NODES}` : "all"}
              onNode={(node) => go(addressOf("doctor", [], { node }))}
            />
            <button type="button" onClick={() => setTimes(times + 1)}>
              Look again
            </button>
          </div>
          {nodes.map((node) => (
            <Node key={node} node={node} times={times} />
          ))}
        </>
      ) : (
        <p class="quiet">Nodes are looked at for this. Add --live, or look at a cluster.</p>
      )}
    </>
  );
}

function Node({ node, times }: { readonly node: string; readonly times: number }) {
  const asked = useAnswer<DoctorAnswer>(`api/doctor?${new URLSearchParams({ node })}`, times);
  const answer = asked.state === "answered" ? asked.answer : undefined;
  return (
    <section class="panel" aria-label={node}>
      <h2>
        {node} {answer !== undefined && <Badge {...verdictOf(answer.diagnoses)} />}{" "}
        {answer !== undefined && <Age source="looked at" at={answer.at} />}
      </h2>
      {answer === undefined ? <Waiting asked={asked} of={node} /> : <Checks diagnoses={answer.diagnoses} />}
    </section>
  );
}

const STATES: Readonly<Record<Diagnosis["state"], readonly [Tone, string]>> = {
  bad: ["bad", "bad"],
  warning: ["warn", "warning"],
  unknown: ["plain", "unknown"],
  good: ["good", "good"],
};

function verdictOf(diagnoses: readonly Diagnosis[]): Verdict {
  const count = (state: Diagnosis["state"]) => diagnoses.filter((one) => one.state === state).length;
  const [bad, warnings] = [count("bad"), count("warning")];
  if (bad > 0) return { tone: "bad", text: bad === 1 ? "1 thing is bad" : `${bad} things are bad` };
  if (warnings > 0) return { tone: "warn", text: warnings === 1 ? "1 warning" : `${warnings} warnings` };
  return { tone: "good", text: "nothing is bad" };
}

const ORDER: readonly Diagnosis["state"][] = ["bad", "warning", "unknown", "good"];

/** What is bad first; what is good stays closed: it is the longer list on most nodes. */
function Checks({ diagnoses }: { readonly diagnoses: readonly Diagnosis[] }) {
  const good = diagnoses.filter(({ state }) => state === "good");
  const others = diagnoses
    .filter(({ state }) => state !== "good")
    .sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  return (
    <>
      {others.length > 0 && <CheckTable diagnoses={others} />}
      {good.length > 0 && (
        <details open={others.length === 0}>
          <summary>
            {good.length} {good.length === 1 ? "check is" : "checks are"} good
          </summary>
          <CheckTable diagnoses={good} />
        </details>
      )}
    </>
  );
}

function CheckTable({ diagnoses }: { readonly diagnoses: readonly Diagnosis[] }) {
  return (
    <Table
      label="Checks"
      look="checks"
      rows={diagnoses}
      keyOf={({ check, found }) => `${check} ${found}`}
      columns={[
        ["Check", ({ check }) => check],
        ["State", ({ state }) => <Badge tone={STATES[state][0]} text={STATES[state][1]} />],
        ["Found, and what to do", ({ found, advice }) => [found, advice !== undefined && <div>→ {advice}</div>]],
      ]}
    />
  );
}
