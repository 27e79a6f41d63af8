import { useEffect, useState } from "preact/hooks";
import type { TraceAnswer, TraceOutcome, TraceVisit } from "../../protocol.ts";
import { socket } from "../findings.ts";
import { Age, Badge, NodeChoice, Waiting } from "../parts/common.tsx";
import { addressOf, go } from "../router.ts";
import { type Store, useAnswer } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly query: URLSearchParams;
}

/** Where a packet goes, rule by rule; what is asked stands in the page's address. */
export function TraceView({ store, query }: Props) {
  const asked = { from: query.get("from") ?? "pod", to: query.get("to") ?? "", node: query.get("node") ?? "" };
  useEffect(() => store.look([]), [store]);
  return (
    <>
      <div class="head">
        <h1>Trace</h1>
      </div>
      <Question key={query.toString()} store={store} asked={asked} />
      {asked.to !== "" && <Traced asked={asked} />}
    </>
  );
}

type TraceQuery = Readonly<Record<"from" | "to" | "node", string>>;

function Question({ store, asked }: { readonly store: Store; readonly asked: TraceQuery }) {
  const [from, setFrom] = useState(asked.from);
  const [to, setTo] = useState(asked.to);
  const [node, setNode] = useState(asked.node === "" ? (store.facts?.node ?? "") : asked.node);
  const submit = (event: Event) => {
    event.preventDefault();
    go(addressOf("trace", [], { from, to, node }));
  };
  return (
    <form class="tools" onSubmit={submit}>
      <label>
        From: an address, or pod, node, outside
        <input value={from} onInput={(event) => setFrom(event.currentTarget.value)} list="senders" required />
      </label>
      <datalist id="senders">
        {["pod", "node", "outside"].map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <label>
        To: a service as NAMESPACE/NAME or NAMESPACE/NAME:PORT, or ADDRESS:PORT; /udp behind it where it is not TCP
        <input value={to} placeholder="shop/web" onInput={(event) => setTo(event.currentTarget.value)} required />
      </label>
      <NodeChoice label="On node" store={store} node={node} onNode={setNode} />
      <button type="submit" class="first">
        Trace
      </button>
    </form>
  );
}

function Traced({ asked }: { readonly asked: TraceQuery }) {
  const given = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== ""));
  const found = useAnswer<TraceAnswer>(`api/trace?${given}`, undefined);
  if (found.state !== "answered")
    return <Waiting key={`${given}`} asked={found} of={asked.node === "" ? "the node" : asked.node} />;
  const { source, at, command, trace } = found.answer;
  return (
    <>
      <p>
        <Age source={source} at={at} />
        {". "}
        <span class="quiet">
          This page's address is the link to it in this console; anywhere else it is the command
        </span>{" "}
        <code class="rule">{command}</code>
      </p>
      {trace.outcomes.map((outcome) => (
        <OutcomePanel key={JSON.stringify(outcome)} outcome={outcome} />
      ))}
      {trace.cannotTell.map(({ probability, problem, visits }) => (
        <section class="panel" key={problem} aria-label="unknown">
          <h2>
            {percent(probability)} <Badge tone="warn" text="unknown" />
          </h2>
          <p>{problem}</p>
          <Walk visits={visits} />
        </section>
      ))}
    </>
  );
}

function OutcomePanel({ outcome }: { readonly outcome: TraceOutcome }) {
  const { probability, verdict, destination, masqueraded, visits } = outcome;
  const { address, port } = destination;
  const end = port === undefined ? address : socket(address, port);
  const text = verdict === "accept" ? `to ${end}${masqueraded ? ", masqueraded" : ""}` : verdict;
  return (
    <section class="panel" aria-label={`${percent(probability)} ${text}`}>
      <h2>
        {percent(probability)} <Badge tone={verdict === "accept" ? "good" : "bad"} text={text} />
      </h2>
      <Walk visits={visits} />
    </section>
  );
}

/** The rules on the way, hook by hook. */
function Walk({ visits }: { readonly visits: readonly TraceVisit[] }) {
  if (visits.length === 0) return <p class="quiet">No rule is for it.</p>;
  return (
    <ol class="walk">
      {visits.map(({ hook, table, chain, rule, text }, at) => (
        <li key={at}>
          <span class="quiet">
            {hook === visits[at - 1]?.hook ? "" : `${hook} · `}
            {table} {chain} {rule}
          </span>{" "}
          <span class="rule">{text}</span>
        </li>
      ))}
    </ol>
  );
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}
