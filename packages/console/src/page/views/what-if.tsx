import { useEffect, useState } from "preact/hooks";
import type { WhatIfAnswer } from "../../protocol/index.ts";
import { ask, type RequestState } from "../ask.ts";
import { TextOrFiles } from "../parts/text-or-files.tsx";
import { Waiting } from "../parts/waiting.tsx";
import { WhatIfChanges } from "../parts/what-if-changes.tsx";
import type { Store } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly query: URLSearchParams;
}

/** What a change would be decided about, and which traffic it would change. Nothing is applied to anything. */
export function WhatIfView({ store, query }: Props) {
  const [manifests, setManifests] = useState("");
  const [configuration, setConfiguration] = useState("");
  const [cidr, setCIDR] = useState(query.get("cidr") ?? "");
  const [asked, setAsked] = useState<RequestState<WhatIfAnswer> | undefined>();
  const compare = async () => {
    setAsked({ state: "asking" });
    setAsked(await ask<WhatIfAnswer>("api/what-if", { manifests, configuration, cidr }));
  };
  useEffect(() => {
    store.look([]);
    if (cidr !== "") void compare();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    void compare();
  };
  return (
    <>
      <div class="head">
        <h1>What if</h1>
        <span class="quiet">
          What would be decided, and change for packets on {store.facts?.node}. Nothing is applied.
        </span>
      </div>
      <form onSubmit={submit}>
        <TextOrFiles
          label="Objects that come, or take the place of those of their names: Services, EndpointSlices, and those that networks are learned from"
          name="objects"
          text={manifests}
          onText={setManifests}
        />
        <details open={configuration !== ""}>
          <summary>Another configuration of the agents</summary>
          <TextOrFiles
            label="A file of --config, in place of the agents' configuration; the mode stays"
            name="configuration"
            text={configuration}
            onText={setConfiguration}
          />
        </details>
        <div class="tools">
          <label>
            A CIDR that would be another network's
            <input value={cidr} placeholder="10.88.0.0/16" onInput={(event) => setCIDR(event.currentTarget.value)} />
          </label>
          <button type="submit" class="first">
            Compare
          </button>
        </div>
      </form>
      {asked !== undefined &&
        (asked.state === "answered" ? <WhatIfChanges answer={asked.answer} /> : <Waiting asked={asked} />)}
    </>
  );
}
