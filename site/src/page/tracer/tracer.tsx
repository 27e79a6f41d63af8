import { useEffect, useState } from "preact/hooks";
import { type Answer, answer, type Question } from "./answer.ts";
import { Asking } from "./asking.tsx";
import { DEMO_NODE, DEMO_OBJECTS } from "./demo.ts";
import { Ends } from "./ends.tsx";

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
