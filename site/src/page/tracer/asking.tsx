import { useState } from "preact/hooks";
import type { Question, RulesOrigin } from "./answer.ts";
import { DEMO_OBJECTS } from "./demo.ts";
import { Field } from "./field.tsx";

const ORIGINS: Readonly<Record<RulesOrigin, string>> = {
  iptables: "Fairlead's in iptables mode, for these objects",
  nftables: "Fairlead's in nftables mode, for these objects",
  pasted: "pasted: what iptables-save, nft list ruleset or nft --json list ruleset prints",
};

const SENDERS = ["192.0.2.9", "10.144.1.20", "10.201.0.10"];
const DESTINATIONS = ["10.96.0.10:80", "10.201.0.10:30080", "10.96.0.11:80"];
const PROTOCOLS = ["tcp", "udp", "sctp"];

interface Props {
  readonly first: Question;
  readonly onAsk: (question: Question) => void;
}

/** The form: rules, a node and a packet. */
export function Asking({ first, onAsk }: Props) {
  const [question, setQuestion] = useState(first);
  const [texts, setTexts] = useState({ objects: DEMO_OBJECTS, pasted: "" });
  const { origin, node } = question;
  const kind = origin === "pasted" ? "pasted" : "objects";
  const set = (part: Partial<Question>) => setQuestion({ ...question, ...part });
  const submit = (event: Event) => {
    event.preventDefault();
    onAsk({ ...question, text: texts[kind] });
  };
  return (
    <form class="tracer-form" onSubmit={submit}>
      <label>
        Rules
        <select value={origin} onChange={(event) => set({ origin: event.currentTarget.value as RulesOrigin })}>
          {Object.entries(ORIGINS).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        {kind === "pasted" ? "Pasted rules" : "Services and EndpointSlices"}
        <textarea
          rows={12}
          spellcheck={false}
          value={texts[kind]}
          onInput={(event) => setTexts({ ...texts, [kind]: event.currentTarget.value })}
          required
        />
      </label>
      <div class="tracer-row">
        <Field label="From" value={question.from} choices={SENDERS} onValue={(from) => set({ from })} />
        <Field label="To" value={question.to} choices={DESTINATIONS} onValue={(to) => set({ to })} />
        <label>
          Protocol
          <select value={question.protocol} onChange={(event) => set({ protocol: event.currentTarget.value })}>
            {PROTOCOLS.map((protocol) => (
              <option key={protocol}>{protocol}</option>
            ))}
          </select>
        </label>
      </div>
      <div class="tracer-row">
        <Field
          label="The node's addresses"
          value={node.addresses.join(" ")}
          onValue={(text) => set({ node: { ...node, addresses: words(text) } })}
        />
        <Field
          label="CIDRs of its pods"
          value={node.podCIDRs.join(" ")}
          onValue={(text) => set({ node: { ...node, podCIDRs: words(text) } })}
        />
        <button type="submit">Trace</button>
      </div>
    </form>
  );
}

const words = (text: string) => text.split(/[\s,]+/).filter((word) => word !== "");
