import { useEffect, useId, useState } from "preact/hooks";
import {
  type Answer,
  answer,
  DEMO_NODE,
  DEMO_OBJECTS,
  type End,
  type Question,
  type RulesOrigin,
  type Step,
  type Walk,
} from "./answer.ts";

const FIRST: Question = {
  origin: "iptables",
  text: DEMO_OBJECTS,
  node: DEMO_NODE,
  from: "192.0.2.9",
  to: "10.96.0.10:80",
  protocol: "tcp",
};

type Shown = { readonly answer: Answer } | { readonly problem: string };

/** A question, and every end of its packet. Everything happens in the browser. */
export function Tracer() {
  const [question, setQuestion] = useState(FIRST);
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    let current = true;
    answerOrProblem(question).then((found) => {
      if (current) setShown(found);
    });
    return () => {
      current = false;
    };
  }, [question]);
  return (
    <>
      <Asking first={FIRST} onAsk={setQuestion} />
      <section aria-live="polite">
        <h2>Where it goes</h2>
        {shown !== undefined && "problem" in shown && <p class="tracer-problem">{shown.problem}</p>}
        {shown !== undefined && "answer" in shown && <Ends answer={shown.answer} />}
      </section>
    </>
  );
}

async function answerOrProblem(question: Question): Promise<Shown> {
  try {
    return { answer: await answer(question) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

const ORIGINS: Readonly<Record<RulesOrigin, string>> = {
  iptables: "Fairlead's in iptables mode, for these objects",
  nftables: "Fairlead's in nftables mode, for these objects",
  pasted: "pasted: what iptables-save or nft list ruleset prints",
};

const SENDERS = ["192.0.2.9", "10.144.1.20", "10.201.0.10"];
const DESTINATIONS = ["10.96.0.10:80", "10.201.0.10:30080", "10.96.0.11:80"];
const PROTOCOLS = ["tcp", "udp", "sctp"];

interface AskingProps {
  readonly first: Question;
  readonly onAsk: (question: Question) => void;
}

/** The form: rules, a node and a packet. */
function Asking({ first, onAsk }: AskingProps) {
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

/** Each end with its share and the rules on the way to it, and at last all rules as text. */
function Ends({ answer }: { readonly answer: Answer }) {
  return (
    <>
      {answer.problems.length > 0 && (
        <ul class="tracer-problem">
          {answer.problems.map((problem) => (
            <li key={problem}>skipped: {problem}</li>
          ))}
        </ul>
      )}
      {answer.ends.map((end) => (
        <EndPanel key={end.text} end={end} />
      ))}
      <details>
        <summary>All rules</summary>
        <textarea rows={20} spellcheck={false} aria-label="All rules" value={answer.rules} readOnly />
      </details>
    </>
  );
}

function EndPanel({ end: { share, text, arrives, walks } }: { readonly end: End }) {
  const tone = arrives === undefined ? "unknown" : arrives ? "good" : "bad";
  const [first, ...others] = walks;
  return (
    <article class={`tracer-end ${tone}`}>
      <h3>
        {percent(share)} {text}
      </h3>
      {first !== undefined && <WalkList walk={first} />}
      {others.length > 0 && (
        <details>
          <summary>
            {others.length} other {others.length === 1 ? "way" : "ways"} there
          </summary>
          {others.map((walk, at) => (
            <section key={at}>
              <h4>{percent(walk.share)}</h4>
              <WalkList walk={walk} />
            </section>
          ))}
        </details>
      )}
    </article>
  );
}

function WalkList({ walk: { steps, provided } }: { readonly walk: Walk }) {
  return (
    <>
      {provided.map((condition) => (
        <p key={condition}>if {condition}</p>
      ))}
      {steps.length === 0 ? <p>No rule is for it.</p> : <Steps steps={steps} />}
    </>
  );
}

function Steps({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <ol>
      {steps.map(({ hook, place, rule }, at) => (
        <li key={at}>
          {hook !== steps[at - 1]?.hook && <strong>{hook} </strong>}
          {place} <code>{rule}</code>
        </li>
      ))}
    </ol>
  );
}

/** `33.3 %`; what is less than a tenth of one stays visible. */
function percent(share: number): string {
  const value = Math.round(share * 1e6) / 1e4;
  return `${value > 0 && value < 0.1 ? "< 0.1" : value.toFixed(Number.isInteger(value) ? 0 : 1)} %`;
}

interface Props {
  readonly label: string;
  readonly value: string;
  readonly choices?: readonly string[];
  readonly onValue: (value: string) => void;
}

/** A line of text that keeps what is typed as it is typed. */
function Field({ label, value, choices, onValue }: Props) {
  const [text, setText] = useState(value);
  const list = useId();
  const type = (event: { readonly currentTarget: HTMLInputElement }) => {
    setText(event.currentTarget.value);
    onValue(event.currentTarget.value);
  };
  return (
    <label>
      {label}
      <input
        type="text"
        value={text}
        spellcheck={false}
        onInput={type}
        {...(choices !== undefined && { list })}
        required
      />
      {choices !== undefined && (
        <datalist id={list}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </label>
  );
}
