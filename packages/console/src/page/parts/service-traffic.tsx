import { useState } from "preact/hooks";
import type { FlowsAnswer } from "../../protocol/index.ts";
import { usePolled } from "../polled.ts";
import { addressOf } from "../router.ts";
import { Age } from "./age.tsx";
import { Curves } from "./curves.tsx";
import { Traffic } from "./traffic.tsx";
import { Waiting } from "./waiting.tsx";
import { Watched } from "./watched.tsx";

interface Props {
  readonly service: string;
  readonly node: string;
}

/** What the endpoints of a service have to do for the clients of a node, on request. */
export function ServiceTraffic({ service, node }: Props) {
  const [shown, setShown] = useState(false);
  return (
    <section class="panel" aria-label="Connections">
      <h2>Connections</h2>
      {shown ? (
        <Watch service={service} node={node} />
      ) : (
        <p>
          <button type="button" onClick={() => setShown(true)}>
            Count connections on {node}
          </button>
        </p>
      )}
    </section>
  );
}

function Watch({ service, node }: Props) {
  const polled = usePolled<FlowsAnswer>(`api/flows?${new URLSearchParams({ node, service })}`);
  const { asked } = polled;
  return (
    <>
      <div class="tools">
        <Watched polled={polled} />
        <a href={addressOf("flows", [], { node, service })}>each connection</a>
        {asked.state === "answered" && <Age source={`connections of ${node}`} at={asked.answer.at} />}
      </div>
      {asked.state === "answered" ? (
        <>
          <Curves answer={asked.answer} />
          <Traffic answer={asked.answer} names={false} />
        </>
      ) : (
        <Waiting asked={asked} />
      )}
    </>
  );
}
