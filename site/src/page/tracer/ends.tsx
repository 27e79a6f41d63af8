import type { Answer, End, Step, Walk } from "./answer.ts";

/** Each end with its share and the rules on the way to it, and at last all rules as text. */
export function Ends({ answer }: { readonly answer: Answer }) {
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
